"""One folder per benchmark: its description, its job template, the parser of its output.

benchmark.toml describes parameters, requirements and results. job.sh runs the benchmark with the
shell library in lib/. parse.py reads its output, `out.CLIENT`.

`registry` reads the descriptions (`toml_table`, `parameters`, `requirements`) and
runs the parsers. `runscript` renders the script of one run, and `placeholders` are replaced in it.
`output` prepares a program's output for a parser. `mounts`, `cvmfs`,
`client_usage`, `mpiprofile` and `pairs` read what the library recorded next to the output.
`user_figures_table` reads figures that a study defines itself. `regular_files` opens files that
belong to users.

A parser trusts no exit code. It checks that the output is complete, that it is of the requested
problem, and that it agrees with itself; else it raises an OutputError with one sentence. No module
here depends on a scheduler or a database.
"""
