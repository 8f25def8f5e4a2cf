"""Modules that every room of the wrappers uses: errors, output, options, programs, leftovers.

`errors` maps exceptions to exit codes: an expected one becomes one line on stderr and its exit
code. An exception that is not in its tables is a bug and keeps its traceback. `console` prints
JSON, tables and numbers. `options` adds the options that several commands share. `programs` finds
Steelyard's own programs and runs programs whose output is read, with a time limit and without a
shell; it has the syntax for which a command line needs one. `leftovers` creates temporary folders
that carry their process' identity: id, start time and PID namespace. One whose process has ended is
stale: the next command that makes a folder of this kind removes it. At the start of every
`steelyard run` it also removes other leftovers of killed runs, as root those of all users. `cron_command_lock` keeps two processes
of a command apart. `signals` delays or converts signals around a change that must be complete or
absent. `doctor_check` is one result of `steelyard doctor`.

The room knows no study, no scheduler and no benchmark. It starts no user's program."""
