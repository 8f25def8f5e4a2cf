"""What every room of the analysis uses: errors, locks, threads, a second process.

`errors` are the exceptions that are not bugs: each carries a sentence for the user. `locks` lock a study's
files without blocking readers. `file_changes` is the one answer to "has this file changed?".
`background_threads` and `fork_pool` run work beside the main thread, in threads and in a forked process.
`process_tuning` is set before heavy libraries are imported. `benchmark_traits` is what benchmarks state
about themselves, so that no other module names a benchmark; `spark` starts a session of Spark.

The room knows neither a study's tables nor statistics.
"""
