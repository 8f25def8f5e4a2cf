"""Used by all of the analysis: errors, locks, threads, a second process.

`errors` are the exceptions that are not bugs: each carries a message for the user. `locks` lock a
study's files without blocking readers. `file_changes` decides whether a file has changed.
`parallel_work` runs work in other threads and in a forked process.
`process_tuning` is set before large libraries are imported. `benchmark_traits` is what benchmarks
state about themselves, so that no other module names a benchmark; `spark` starts a session of
Spark.

These modules know neither a study's tables nor statistics.
"""
