"""From the database to means, spreads, overheads, slopes and shares.

`study_data.read_study()` reads a study through `study_database`; `summary.summarize()` groups its runs by
variant, condition and metric and compares each condition with the baseline. `design` decides what is
independent: runs, jobs or blocks. `slopes`, `tolerances`, `optimum`, `scaling`, `latency_share`, `factor_axes`
and `factor_series` need numeric factors. `network`, `energy_metrics`, `span_metrics`, `node_metrics` and
`iterations` read further metrics.
`source_checks`, `meter_disagreements`, `usage_sources`, `total_scope`, `unit_conflicts` and `interleaving`
collect what limits a comparison. `stopping` decides whether a study with `stop` has enough runs;
`parquet_summary` computes the summary from Parquet files alone. `machine_tags` makes what a node was
comparable between days.

A run is one value: iterations and clients are averaged first. The design follows the plan, never the
values. No run is dropped; those that do not count have a reason.
"""
