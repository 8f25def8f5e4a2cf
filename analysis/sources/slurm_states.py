"""Slurm's words for the state of a job, and what each is called here."""

# The first word of the State that sacct and squeue tell -> docs/formats.md part 8.
STATES = {
    "BOOT_FAIL": "node_fail",
    "CANCELLED": "cancelled",
    "COMPLETED": "completed",
    "COMPLETING": "running",
    "CONFIGURING": "running",
    "DEADLINE": "timeout",
    "FAILED": "failed",
    "NODE_FAIL": "node_fail",
    "OUT_OF_MEMORY": "out_of_memory",
    "PENDING": "pending",
    "PREEMPTED": "cancelled",
    "REQUEUED": "requeued",
    "REQUEUE_FED": "pending",
    "REQUEUE_HOLD": "pending",
    "RESIZING": "running",
    "RESV_DEL_HOLD": "pending",
    "REVOKED": "cancelled",
    "RUNNING": "running",
    "SIGNALING": "running",
    "SPECIAL_EXIT": "pending",
    "STAGE_OUT": "running",
    "STOPPED": "running",
    "SUSPENDED": "running",
    "TIMEOUT": "timeout",
}

REASONS = {
    "BOOT_FAIL": "a node did not boot",
    "DEADLINE": "the job's deadline passed",
    "NODE_FAIL": "a node failed",
    "OUT_OF_MEMORY": "the job went out of memory",
    "PREEMPTED": "the job was preempted",
    "REQUEUED": "the job was requeued",
    "REVOKED": "a sibling cluster started the job",
}
