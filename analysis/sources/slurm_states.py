"""Slurm's states of jobs, and the corresponding states of Steelyard."""

from __future__ import annotations

# First word of State in sacct and squeue, and the state of docs/formats.md part 8.
STATES = {
    "BOOT_FAIL": "node_fail",
    "CANCELLED": "cancelled",
    "COMPLETED": "completed",
    "COMPLETING": "running",
    "CONFIGURING": "running",
    "DEADLINE": "timeout",
    "EXPEDITING": "pending",
    "FAILED": "failed",
    "LAUNCH_FAILED": "failed",
    "NODE_FAIL": "node_fail",
    "OUT_OF_MEMORY": "out_of_memory",
    "PENDING": "pending",
    "POWER_UP_NODE": "pending",
    "PREEMPTED": "cancelled",
    "RECONFIG_FAIL": "failed",
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
    "EXPEDITING": "EXPEDITING: it is to start before others",
    "LAUNCH_FAILED": "LAUNCH_FAILED: it did not start on its nodes",
    "NODE_FAIL": "a node failed",
    "OUT_OF_MEMORY": "the job went out of memory",
    "POWER_UP_NODE": "POWER_UP_NODE: waiting for nodes that are switched on",
    "PREEMPTED": "the job was preempted",
    "RECONFIG_FAIL": "RECONFIG_FAIL: its nodes could not be set up for it",
    "REQUEUED": "the job was requeued",
    "REVOKED": "a sibling cluster started the job",
}
