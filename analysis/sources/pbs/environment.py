"""The environment that the programs of PBS get from us.

They take defaults from variables of their own (PBS_DPREFIX, PBS_QSTAT_NO_COMPLETE, PBSDEBUG, …):
a user's would change what we ask, and what the answer means. A PBS job around us leaves some, too.
"""

from __future__ import annotations

import os

OF_PBS = ("PBS", "QSTATRCHOME", "TORQUE_")
# Which server, and how it is reached; PBS_DEFAULT is Torque's and an old name of OpenPBS'.
WAY = ("PBS_DEFAULT", "PBS_SERVER", "PBS_PRIMARY", "PBS_SECONDARY", "PBS_CONF_FILE", "PBS_EXEC",
       "PBS_HOME", "PBS_BATCH_SERVICE_PORT", "PBS_BATCH_SERVICE_PORT_DIS", "PBS_LEAF_NAME",
       "PBS_AUTH_METHOD", "PBS_ENCRYPT_METHOD", "PBS_SUPPORTED_AUTH_METHODS")  # fmt: skip


def without_pbs_variables() -> dict[str, str]:
    """Our environment without what another job or server of PBS left in it."""
    return {name: value for name, value in os.environ.items() if not name.startswith(OF_PBS)}


def server_variables() -> dict[str, str]:
    """What leads to the server that our environment points to."""
    return {name: os.environ[name] for name in WAY if name in os.environ}


def build_environment() -> dict[str, str]:
    """For a program that only asks, or deletes: times in UTC, nothing from a ~/.qstatrc."""
    return {
        **without_pbs_variables(),
        **server_variables(),
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        "QSTATRCHOME": "/dev/null",
    }
