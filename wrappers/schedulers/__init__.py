"""Batch systems behind one interface: what submit, status and cancel need of a scheduler.

`base` defines the interface: a `Batch` to submit, the `Task`s of a study and the class `Scheduler`.
`slurm`, `pbs` and `local` implement it; `registry` lists them, and no other room imports one
directly.
`ledger` writes submissions.jsonl: accepted job ids, on disk before the next step begins.
`available_nodes` describes where a batch could run. `retries` repeats a command whose server does
not answer.

All commands run as the user, without a shell and with a time limit. A server that does not answer
is an error, never an empty answer: no run counts as ended because its server was unreachable."""
