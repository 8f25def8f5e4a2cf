"""Import of all sources into a study's database, matching of jobs to runs, and cross-checks.

`collect.collect()` runs all steps in order. `accounting_import`, `record_import` and
`sample_import` read one kind of source each, `run_output_import` what the run itself wrote:
figures, tags, programs, spans, its program's usage. `job_index` matches jobs to runs by id and
time, `attempt_building` combines accounting, submissions and run folders to attempts, `tables`
picks the one that counts. `network` reads the network conditions of nodes. `checks` decides whether
a run was executed under its levels, and compares sources that count the same quantity.
`unchanged_attempts` skips attempts that an earlier collect has read. `tables` writes.

Collect is idempotent. The database changes completely or not at all; the Parquet files follow, and
`parquet/exported` exists once they are complete. Raw files are copied or read, never changed. A
run without a result is a row with its state, and a reason once it was submitted.
"""
