"""IOzone: throughput of several processes, or of every size of file with every size of record.

job.sh runs iozone in a fresh folder below `directory`. Mode `throughput` starts `processes`, each
with its file; mode `auto` is one process that measures each size of file with each size of record.
Sizes are whole KiB. The mount's counters are recorded. In throughput mode an iozone that cannot
open its files waits forever: [job] time_out ends it.

parse.py reads 3.4 and 3.507. The exit code is not reliable: the last line and each figure of the
requested tests must be there. In mode auto each pair of sizes is an iteration, in no order of time.
Tables of operations per second or microseconds (-O, -N) are rejected.
"""
