"""OSU micro-benchmarks or Intel MPI Benchmarks: latency, bandwidth and collectives of MPI.

The program is the user's own (parameter `program`, on every node). job.sh starts it `repetitions`
times, with all ranks of the job at once, by `mpirun`. Each time it prints one table, so a run has
as many tables as repetitions; each is one iteration of the results.

parse.py checks that the output has one table per repetition, all of one test, and that each table
has every message size from `smallest` to `largest`, doubled each time: two powers of two. A barrier
has one row without a size, and IMB-MPI1 begins with an empty message. Of IMB the number of
processes is compared, too. Rates must agree with the times or message rates of their rows.

latency_s is of the smallest message, every other figure of the largest one; those between stay in
the output. Read are blocking tests of OSU's pt2pt and collective, and of IMB-MPI1. A table of
another test, suite or language is rejected by its title: the run has no figures, and the reason.
osu_bw_fan_in and osu_bw_fan_out are rejected by the program's name, since their rate is of several
ranks.
"""
