"""The command `steelyard`: a file for each of its sub-commands.

`entry` is where the program begins, `cli` finds the sub-command's module, runs it and turns
exceptions into exit codes. A command has `add_arguments(parser)` and `main(args) -> int`; its
docstring is its help. `parsers`, `completion` and `man_pages` derive help, man pages and
completions from the same parsers. `demo` is `make demo`.

A command parses, calls the room that does the work, and prints. Heavy libraries are imported inside
functions, so that `steelyard --help` stays fast.
"""
