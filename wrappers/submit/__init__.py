"""From a plan to jobs, and the state of a study.

`submit` makes the folder, checks and submits; submitted again, a study gets only what is missing.
`batches` groups the missing runs, `batch_submission` submits and records them so that a crash loses
nothing. Before that `preflight`, `node_checks`, `program_checks` and `image_checks`
find what is sure to fail, `cost_estimate` and `statistical_power` estimate what the study costs and which
difference it can detect, and `study_preview` collects it for `check` and `--dry-run`. `study_growth` adds
blocks to a study with `stop`; `figure_updates` brings changed figures into the plan. `status` derives the
state of every run from its files and its scheduler, with `state_cache` for runs that have ended;
`time_left`, `status_screen` and `status_watch` present it.

A run is submitted at most once at a time. Where the scheduler cannot be asked, its runs are unknown, not
lost.
"""
