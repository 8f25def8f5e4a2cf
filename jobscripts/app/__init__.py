"""The user's own command: how long it takes, and figures from what it prints.

job.sh gives the command line to `bash -c` in the run's scratch folder, `iterations` times, one
after another, and writes exit code, start and end of each to app.CLIENT. A command that fails ends
the run. Variables of `env` are for the command alone. Afterwards it records the programs that the
command names, their SHA-256, and the version if the study says how to print it.

parse.py returns `seconds` of each iteration: steelyard-time's elapsed time where it measured, else
that of the two clocks, and counters of CVMFS repositories. Where the wall clock was set meanwhile,
the time since boot counts. `own_figures()` reads the study's figures: every match of a pattern is
an iteration. A figure that is not found has a reason. A pattern that cuts a number or takes one
with another unit is refused.

The command's output is not judged otherwise: exit code 0 means that it succeeded.
"""
