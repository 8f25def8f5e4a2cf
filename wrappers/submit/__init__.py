"""From a plan to jobs, and the state of a study.

`submit` creates the folder, checks and submits; a study that is submitted again gets only what is
missing. `batches` groups the missing runs, `batch_submission` submits and records them so that a
crash loses nothing. Before that `scheduler_checks`, `node_kernel_checks` and `program_checks`
find what is certain to fail, `cost_estimate` and `statistical_power` estimate what
the study costs and which difference it can detect, and `study_preview` collects it for `check` and
`--dry-run`. `stop_rule` adds blocks to a study with `stop`; `each_node_levels` draws the nodes of
`node = "each"`; `output_pattern_updates` brings changed patterns of figures into the plan.
`run_state` derives the state of every run from its files and its scheduler, and caches those of
ended runs; `status` counts them and estimates the time left, `status_watch` shows it until the end. `collected_sessions` marks complete sessions, which `collect` skips.

A run is submitted at most once at a time. A submission whose run list is written but not recorded
is looked for at its scheduler, by the name of its job: it is recorded, or its files are removed. If
the scheduler does not answer, the states are those of the files (started runs are `running`,
submitted ones `pending`), with a note; no run is `lost`."""
