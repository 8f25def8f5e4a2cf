"""`steelyard run`: commands measured on this machine, without a scheduler.

`arguments` turns the command line into commands, hooks and a plan; `option_checks` refuses what cannot
work before anything starts. `session` holds the order: rounds in random order, warm-ups, hooks, and the
end, by count or by a narrow interval. `measurement` executes a command once under `steelyard-node
sample` and reads its record; `container_run` does so in a launcher's container, `benchmark` for one of
Steelyard's benchmarks, `shell_overhead` for an empty shell. `comparisons` compares commands with the
fastest. `results` holds everything; `results_text` and `export` render it, `progress` shows the state
meanwhile.

A figure that could not be measured is null with a reason. Ctrl-C ends the session after the run in
progress was stopped, and what is measured until then is printed. Nothing is overwritten.
"""
