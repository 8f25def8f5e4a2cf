"""STREAM: memory bandwidth of one node, by steelyard-stream or the user's own program.

job.sh runs one client with all its threads on its node (`threads`, else one per processor of the
job). Size and repetitions of steelyard-stream are arguments; the user's own program has them built
in, and the study states them to be compared.

parse.py reads the best rate of the four loops, triad first. STREAM exits with 0 if its arrays are
wrong, so its verdict is read; size and repetitions are compared with the requested ones, and each
rate with its time. The first repetition does not count. A run is one value.
"""
