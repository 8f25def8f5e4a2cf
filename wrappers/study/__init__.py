"""The study file, its plan and its folder.

`study` reads a study file strictly: an unknown key is an error that lists the known ones. Its
tables have a module each: `job_settings`, `factors` (also `scaling`), `levels`, `benchmarks`;
`table_reader` is the reader that they share. `benchmarks` decides which factors apply to a variant
of a benchmark, and derives parameters from a run's nodes and tasks. `plan` lays out
the runs: benchmarks x conditions x repeats, in blocks that contain every condition, in random order
from a recorded seed. `folder` is the study's folder (docs/formats.md part 6) with its lock, `sessions` are the
sessions of a repeated study, `planned_run` is a run as plan.json has it, `template` renders a
commented study file from five answers.

The room submits nothing and queries no scheduler (`submit` does). A submitted plan only grows: its
runs keep their id, and their block unless they are repeated."""
