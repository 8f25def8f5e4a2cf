"""Is the measurement right? Known loads are run with every launch method, and measured.

A known load (known_loads.py) is steelyard-load with some actions. It counts what it does, and that
is the truth. A launch method is how it is started: `steelyard run` (local_runs.py, and beside it
network_link.py and energy.py), or the jobs of a batch system. launch_methods.py has what every batch system
has in common; slurm_jobs.py and pbs_jobs.py have the commands, the launch methods and the reports
of one. jobs.py submits all of them at once and waits. cells.py sets the truth beside each record
and beside the scheduler's totals (job_results.py); limits.py has how far they may differ, and why.
table.py judges, table_output.py prints.

Nothing of this reads a counter: a truth never comes from the programs that are judged.
"""
