"""The scheduler PBS, in the dialects of Torque and OpenPBS: registry.py finds its class here.

`scheduler` implements the interface of `schedulers.base` with qsub, qstat, qdel, qselect and
pbsnodes. `dialects` has all differences between the two servers; everything else is the same
for both. `Pbs.dialect` chooses by the version
that qstat prints; Slurm's imitation of qsub is not PBS. `script` renders the batch script,
`options` checks options of qsub, `node_request` completes node specifications, `task_states` reads
the states of runs, `doctor_checks` are those of `steelyard doctor`.

A batch is one job array, a batch of one run a plain job. Its tasks find their run in
SUBMISSION.runs. Variables of the submitting shell are in SUBMISSION.env, readable by the user only.

`command` separates a server that gives no answer (LostError) from a refusal. A lost command is
repeated for 120 s, then it is an error. qsub is never blindly repeated: after a lost answer the job
is looked for by its name, and submitted only if the server has none. A server that keeps no ended
jobs finds only active ones. A query about jobs of another server is an error, not the answer that
they have ended. Where the accounting does not answer, ended runs are unknown here; `submit.run_state`
decides what that means.

A condition without Steelyard's prologue or hook on the nodes is refused before qsub. The room reads
no accounting itself (`analysis.sources.pbs`).
"""

from steelyard.wrappers.schedulers.pbs.scheduler import Pbs

__all__ = ["Pbs"]
