"""The NAS Parallel Benchmarks: Steelyard's own programs in C (src/), or NASA's.

job.sh runs one kernel of one class. Ranks are on all nodes of the job, or with the factor `clients`
on each client's own node. `folder` selects NASA's programs (cg.A.x, or cg.A.2 of 3.3), and
`implementation` must not contradict it: the parser checks whose program ran if the study names it.
docs/npb.md compares both.

parse.py reads the closing block. NASA's programs exit with 0 after a failed verification, and some
leave ranks idle if their number does not suit. So the verdict is read, and kernel, class and ranks
are compared with the requested ones. `seconds` is absent where NASA's program prints 0.00. Version
and vector instructions are tags. A run is one value.
"""
