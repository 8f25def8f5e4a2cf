"""HPCG, the user's own program: conjugate gradients on p ranks.

job.sh writes hpcg.dat (grid of each rank, seconds) into the scratch folder and runs the program. It
leaves one document there, whose name depends on the vendor; none or several fail the run.

parse.py reads the text of 3.1, the YAML of 3.0, and the documents of Intel and NVIDIA. HPCG exits
with 0 for an invalid result, so the verdict is read; the problem is compared with the requested
one, and the rates with operations and times. `gflops` is HPCG's rating, `raw_gflops` is without
set-up and optimization. A run is one value. Below 1800 s it is no official result; that is not
refused.
"""
