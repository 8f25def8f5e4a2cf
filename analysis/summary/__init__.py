"""Computes means, spreads, overheads, slopes and shares from the study's database.

`study_data.read_study()` reads a study through `database_connection`; `summary.summarize()` groups
its runs by variant, condition and metric and compares each condition with the baseline.
`sampling_units` decides which units are independent: runs, jobs or blocks. `slopes`,
`tolerated_levels`, `optimum`, `scaling` and `latency_share` need the axes of `numeric_factors`.
`network`, `shared_node_energy`, `span_metrics`, `gpu_and_pressure` and `tags_and_programs` read
further metrics and tags. `meter_disagreements`, `usage_scope` and `interleaving` collect what
limits a comparison. `stopping` decides whether a study with `stop` has enough runs;
`parquet_summary` computes the summary from Parquet files alone.

A run is one value: iterations and clients are averaged first. The design follows the plan, never
the values. No run is dropped; runs that do not count have a reason.
"""
