"""IOR, the user's own program: all ranks of a job write and read a shared file system.

job.sh makes a fresh folder below `directory`, which all nodes must share, and runs all ranks at
once with the user's `options`. It sets -i, -o and the summary itself. The text has times with more
digits than the JSON document (`summary`). The mount's counters are recorded.

parse.py reads IOR 3.3 and 4.0. Each repetition is an iteration: its rate must agree with the bytes
of all ranks and its time, and all together with IOR's own maximum, minimum and mean. Figures are
`write` and `read`; the page cache is whatever the options make of it.
"""
