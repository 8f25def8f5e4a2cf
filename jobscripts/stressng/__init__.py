"""stress-ng: one stressor, and its bogo operations per second.

job.sh checks that the program has the stressor, and starts `workers` of it, or one per processor of
the job: to stress-ng 0 would be all processors of the node. It runs with --verify and a fixed seed;
its files are in the scratch folder.

parse.py reads the YAML: operations per second of real time, and per second of processor time. The
rates must agree with the count and the times. Bogo operations are comparable only for one stressor
of one version. A run is one value.
"""
