"""One folder per benchmark: its description, its job template, the parser of its output.

benchmark.toml describes parameters, requirements and results; job.sh runs the benchmark with the shell
library in lib/; parse.py reads `out.CLIENT`. `registry` reads the descriptions (`description`, `parameters`,
`requirements`, `transfers`) and runs the parsers. `runscript` renders the script of one run, in which
`placeholders` are filled. `output` and `output_noise` prepare a program's output for a parser; `mounts`,
`cvmfs`, `client_usage`, `mpiprofile` and `pairs` read what the library recorded beside it. `user_figures`
are figures that a study describes itself; `userfiles` opens files that belong to users.

A parser trusts no exit code: it checks that the output is complete, is of the requested problem, and agrees
with itself, or raises an OutputError with one sentence. No module here knows a scheduler or a database.
"""
