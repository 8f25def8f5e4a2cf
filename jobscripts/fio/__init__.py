"""fio, each client in a private folder: pattern, block size and depth, or the user's job file.

job.sh runs the fio of PATH, or the user's own, in a fresh folder below `directory`. With `job_file`
only `directory` of the other parameters counts; a job file with new_group is refused, since fio's
JSON does not say which groups ran at once. The mount's counters are recorded.

parse.py reads fio's JSON: bandwidth and requests per second of all jobs together, and of reads and
writes their mean latency and percentiles. The rate of a group is all bytes by its longest job's
time; several groups count as run one after another. Percentiles of several jobs cannot be combined
and are absent. A run is one value: it has no iterations.
"""
