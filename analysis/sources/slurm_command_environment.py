"""The environment of Slurm commands that Steelyard runs.

Slurm commands take defaults from environment variables (SQUEUE_STATES, SACCT_FORMAT,
SLURM_TIME_FORMAT, …). A user's settings would change the request and the meaning of the answer.
"""

from __future__ import annotations

import os

OF_SLURM = ("SLURM", "SPANK_", "SBATCH", "SALLOC", "SRUN_", "SQUEUE", "SINFO", "SACCT", "SCANCEL",
            "SCONTROL", "SSTAT", "SREPORT", "SPRIO", "SSHARE", "SDIAG", "STRIGGER")  # fmt: skip
# Variables that select the cluster and the way to reach it.
WAY = ("SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_CLUSTERS", "SLURM_JWT", "SLURM_SACK_SOCKET",
       "SLURM_SACK_KEY", "SLURM_SACK_JWKS")  # fmt: skip


def remove_slurm_variables() -> dict[str, str]:
    """Return this environment without the variables of another Slurm job or cluster."""
    return {name: value for name, value in os.environ.items() if not name.startswith(OF_SLURM)}


def server_variables() -> dict[str, str]:
    """Return the variables that select the cluster."""
    return {name: os.environ[name] for name in WAY if name in os.environ}


def build_environment() -> dict[str, str]:
    """Return the environment for a command that only queries or cancels.

    Times are in UTC, text is UTF-8, and lists such as `100_[1,3,…]` are complete.
    """
    fixed = {"TZ": "UTC", "LC_ALL": "C.UTF-8", "SLURM_BITSTR_LEN": "0"}
    return {**remove_slurm_variables(), **server_variables(), **fixed}
