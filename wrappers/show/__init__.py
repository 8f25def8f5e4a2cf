"""`steelyard show` and `steelyard compare JOB JOB`: jobs as a person or a program reads them.

`job_data` finds jobs by the ids that a person types, at the scheduler that issues such ids or in a
cluster's database, and collects everything about one job once: its view, its efficiency,
its time series, the advice, and its energy shares on a shared node. The other modules render that:
`job_text` one job on one screen, `job_table` several jobs with a line each, `job_pair` two jobs
side by side, `job_document` the same for `--json`. `efficiency_text`, `node_usage` and
`time_series` are sections of the screen; `terminal_text` fits text to the terminal's width.

A figure that is not known is printed as such with its reason, never as 0. A lower bound is marked
with `≥`. The room reads; it changes neither the accounting nor a record, and computes no
statistics: the figures come from `analysis.job` and `analysis.collect`.
"""
