"""Batch systems behind one interface: what submit, status and cancel need of a scheduler.

`base` defines the interface: a `Batch` to submit, the `Task`s of a study and the class `Scheduler`.
`slurm`, `pbs` and `local` implement it; `registry` lists them, and no other room but calibrate
imports one directly. `ledger` writes submissions.jsonl: accepted job ids, synced while the next
batch is submitted. `available_nodes` describes where a batch could run. `retries` repeats a command
whose server does not answer.

All commands run as the user, without a shell and with a time limit. If the server of the queue does
not answer, that is an error: no run counts as ended because of it, and `steelyard status` shows the
states of the files. If only the accounting does not answer, a run that left the queue without a
result is `lost`."""
