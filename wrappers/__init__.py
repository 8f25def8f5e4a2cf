"""What a user starts: the command `steelyard` and the rooms that do its work.

`commands` parses and prints; every command calls a room. `study` reads a study file and plans its
runs, `submit` turns the plan into jobs by `schedulers`, and derives the state of each run. `run`
measures commands on this machine without a scheduler. `launchers` are containers, `netem` network
conditions. `show` presents jobs, `sweep` packs old records, `publish` completes Slurm's accounting.
`doctor` checks an installation, `calibrate` measures known loads, `cluster` starts a throwaway
Slurm. `base` is used by all.

Within a study the runs themselves are shell scripts (`jobscripts`); accounting, records and
statistics are read and computed in `analysis`. Samples and records are written by `steelyard-node`
(plugins/node). Expected errors are one line and an exit code (`base.errors`); whatever else is
raised is a bug and keeps its traceback.
"""
