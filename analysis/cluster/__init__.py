"""The database of a cluster's jobs, sums over it, and the same sums for Prometheus.

`collect` queries the accounting for the time since the last pass and the day before it, and adds
the nodes' records. `job_row` turns one start of a job into a row that names the source of each
figure. `job_records` finds records of many jobs at once, and decides how far each is trusted, since
it is its user's file and the accounting is root's. `database` and `day_files` store the rows,
`stored_job_lookup` reads one job back. `top` sums, `prometheus_metrics` writes counters.

A pass may be repeated at any time and adds nothing twice. An unknown figure is in no sum; every sum
states the number of its jobs. Counters never decrease.
"""
