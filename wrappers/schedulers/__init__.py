"""Batch systems behind one interface: what submit, status and cancel need of a scheduler.

`base` defines the interface: a `Batch` to submit, the `Task`s of a study and the class `Scheduler`.
`slurm`, `pbs` and `local` implement it; `registry` lists them, and no other room imports one directly.
`ledger` is submissions.jsonl: accepted job ids, appended and on disk before anything else happens.
`available_nodes` describes where a batch could run, `retries` repeats a command whose server is away.

All commands run as the user, without a shell and with a time limit. A server that does not answer is an
error, never an empty answer: no run is taken for ended because nobody could be asked.
"""
