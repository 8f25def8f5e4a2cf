"""`steelyard calibrate`: known loads run by every launch method, to test whether they are measured
correctly.

A known load (known_loads.py) is steelyard-load with some actions. It counts what it does, and this
count is the truth. A launch method is how it is started: `steelyard run` (local_runs.py, with
network_link.py and second_energy_meter.py), or the jobs of a batch system. job_system.py has
what all batch systems share: what describes such a job, and how its results are read; slurm_jobs.py
and pbs_jobs.py have the commands, launch methods and reports of one. jobs.py submits all jobs at
once and waits. truth_comparison.py compares the truth with each record and with the scheduler's
totals; limits.py has how far they may differ, and why. table.py judges and prints.

No module reads a counter: a truth never comes from the programs that are judged."""
