"""mdtest, the user's own program: rates at which files and directories are made, read and removed.

job.sh makes a fresh folder below `directory`, which all nodes must share, and runs all ranks at
once, one iteration (-i 1): of several mdtest prints only a mean. The mount's counters are recorded.

parse.py reads 3.3 to 4.1. The figure of a phase is the rate of the slowest rank, since only then
all have finished; it must agree with the longest time. Versions differ in what their columns are,
and 4.1 labels seconds as ms/op: the parser knows each. A run is one value.
"""
