"""`steelyard run`: commands measured on this machine, without a scheduler.

`run_plan` turns the options into commands, hooks and a plan; `option_checks` rejects what cannot work before anything starts. `run` measures all commands and
returns their results. `measurement_rounds` has the order: rounds in random order, warm-ups, hooks,
and the end, by count or by a narrow interval. `measurement` executes a command once under
`steelyard-node sample` and reads its record, and times an empty shell; `container_run` does so in a launcher's container,
`benchmark` for one of Steelyard's benchmarks. `comparisons` compares commands with the fastest.
`results` contains all results, prints and exports them; `progress` shows the state during the runs.

A figure that could not be measured is null with a reason. Ctrl-C stops the current run and ends the
session, and earlier measurements are printed. No file is overwritten."""
