"""HPL: the rate at which a dense system is solved, by hpcc or by the user's own xhpl.

hpl.toml has the parameters that hpl and hpcc share. job.sh writes hpccinf.txt or HPL.dat and runs p
× q ranks. With hpcc the output is its complete file, and its other tests run, too.

A run may solve several systems (several values of nb, pfact, …). Then `gflops` and `hpl_s` are of
the fastest, and each system is an iteration of `system_gflops`.

Exit codes are not reliable: xhpl exits with 0 after a failed residual, and hpcc solves another
problem if the grid is wrong. parse.py reads the verdict of every system and compares each problem
and variant with the requested ones; one failed system fails the run. Programs that factor in lower
precision (HPL-MxP) are refused: their rate is not HPL's. Of NVIDIA's program, parameters that it
ignores must have their default.
"""
