"""Messages between the job's nodes by Steelyard's own program: latency, bandwidth, collectives.

All ranks run `client` (Python with mpi4py); `operations` has the timed operations. It needs no
program of the user. A test is repeated `repetitions` times for each message size from `smallest` to
`largest`, doubled each time; a repetition is the mean of `iterations` messages or calls, of fewer
for messages above 8 KiB. Contents are checked after the timing; a damaged message ends all ranks.

Latency and bandwidth are of one pair of ranks, on two nodes where there are two. Collectives are
the slowest rank's mean time. parse.py returns latency of the smallest message and all others of the
largest one, an iteration for each repetition; sizes between stay in out.0.
"""
