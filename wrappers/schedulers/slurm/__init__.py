"""The scheduler Slurm: registry.py finds its class here.

`scheduler` implements the interface of `schedulers.base` with sbatch, squeue, sacct, scancel and
scontrol. `script` renders the batch script, `partitions` finds the nodes that a batch may use,
`task_states` reads squeue (waiting and running runs) and sacct (ended ones), `doctor_checks` are
those of `steelyard doctor`.

A batch is one job array, at most MaxArraySize runs. Each task finds its run in SUBMISSION.runs and
executes run.sh; its attempt folder is named by raw job id and restart count. sbatch gets only named
variables of the user's environment. Options that Steelyard sets itself, or that have a key in
[job], are refused in [job] options.

`command` separates a controller that gives no answer (LostError) from a refusal. A lost command is
repeated for 120 s, then it is an error. sbatch is never blindly repeated: after a lost answer the
job is looked for by its name, in the queue and then in the accounting. If the accounting does not
answer, that is repeated, too; without accounting the queue is the only source.

A condition whose option sbatch does not have is refused: the plugin is not installed. Without the
plugin the jobs have no tags.
"""

from steelyard.wrappers.schedulers.slurm.scheduler import Slurm

__all__ = ["Slurm"]
