"""Readers of the accounting of Torque and OpenPBS (PBS Pro).

`accounting` implements the interface of `sources.accounting` from the best source that this user
may read: the server's logs, else qstat. Column `extra` of a row names the source.

From log to row: `accounting_logs` finds the folder and reads the days' files, also compressed, the
latest first, until each requested job is complete; it derives Unix times from records that have
both clocks. `accounting_lines` parses a line, `job_starts` orders a job's lines into starts,
`accounting_rows` makes a row for each start. `pbs_commands` reads from qstat what the server still
has. `hook_totals` reads Steelyard's totals in OpenPBS's accounting, `record_dir` the folder of
records on this host. `field_values` parses job ids, durations, sizes and nodes, and decides a job's
outcome from the exit status.

A line that cannot be parsed is kept with the reason and stops nothing. Torque quotes nothing, so a
field may be ambiguous: such fields are named in `extra`. The JSON of qstat is not used. If neither
logs nor qstat can be read, that is an error, not an empty answer. Nothing is written or submitted
(`wrappers.schedulers.pbs` does).
"""
