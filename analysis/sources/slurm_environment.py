"""The environment that Slurm's programs get from us.

Every one of them takes defaults from variables of its own (SQUEUE_STATES, SACCT_FORMAT,
SLURM_TIME_FORMAT, …): a user's would change what we ask, and what the answer means.
"""

from __future__ import annotations

import os

OF_SLURM = ("SLURM", "SPANK_", "SBATCH", "SALLOC", "SRUN_", "SQUEUE", "SINFO", "SACCT", "SCANCEL",
            "SCONTROL", "SSTAT", "SREPORT", "SPRIO", "SSHARE", "SDIAG", "STRIGGER")  # fmt: skip
# Which cluster, and how it is reached.
WAY = ("SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_CLUSTERS", "SLURM_JWT", "SLURM_SACK_SOCKET",
       "SLURM_SACK_KEY", "SLURM_SACK_JWKS")  # fmt: skip


def remove_slurm_variables() -> dict[str, str]:
    """Our environment without what another Slurm job or cluster left in it."""
    return {name: value for name, value in os.environ.items() if not name.startswith(OF_SLURM)}


def server_variables() -> dict[str, str]:
    """What leads to the cluster that our environment points to."""
    return {name: os.environ[name] for name in WAY if name in os.environ}


def build_environment() -> dict[str, str]:
    """For a program that only asks, or cancels: times in UTC, text in UTF-8, `100_[1,3,…]` whole."""
    fixed = {"TZ": "UTC", "LC_ALL": "C.UTF-8", "SLURM_BITSTR_LEN": "0"}
    return {**remove_slurm_variables(), **server_variables(), **fixed}
