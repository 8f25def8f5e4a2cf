"""HPC Challenge: HPL, memory, random access, Fourier transforms and messages in one program.

job.sh writes hpccinf.txt from the parameters of hpl.toml, and runs hpcc with p × q ranks in the
fresh scratch folder. stdout is hpcc's output file. Setup tags the BLAS library.

parse.py reads the figures of the summary; a metric is its key in lower case. It reads the verdicts
of the tests from the sections before, and does not rely on the exit code. HPL's part is checked as
in the benchmark hpl: a grid that does not fit makes hpcc solve another problem. A figure of -1 was
not measured, as ping-pong with one rank, and is absent. A run is one value.
"""
