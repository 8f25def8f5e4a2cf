"""The study file, its plan and its folder.

`study` reads a study file strictly: an unknown key is an error that lists the known ones. Its tables
have a module each: `job`, `factors`, `levels`, `benchmarks`, `stopping_rule`; `study_table` is the reader
they share. `variants` decides which factors apply to a variant of a benchmark. `plan` lays out the runs:
benchmarks x conditions x repeats, in blocks that hold every condition, in random order from a recorded
seed. `folder` is the study's folder (docs/formats.md part 6), `planned_run` a run as plan.json has it,
`template` a commented study file from five answers.

A plan only grows: runs that were planned keep their id, block and order. The room submits nothing.
"""
