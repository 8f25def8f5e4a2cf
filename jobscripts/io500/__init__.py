"""The IO500, the user's own program and configuration: its score and its twelve phases.

job.sh appends the run's folders of data and results to the user's configuration, where the last
value of a key counts, and runs all ranks of the job at once. Configuration and result.txt are kept
in the attempt folder, and the mount's counters are recorded.

parse.py recomputes the score from the phases: geometric means of four bandwidths and of eight
rates, and the root of their product. A run that the IO500 marks INVALID fails, unless `invalid =
true`; then `valid` is 0. A run is one value.
"""
