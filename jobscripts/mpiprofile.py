"""The profile of an MPI program (docs/mpi-profile.md) as results of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from steelyard.jobscripts.errors import OutputError
from steelyard.jobscripts.pairs import number
from steelyard.jobscripts.registry import Result
from steelyard.jobscripts.userfiles import read_regular

MOST_BYTES = 1 << 30
# In version 1 the threads' times were added up, which may be more than there was.
VERSIONS = (1, 2)
SHARES = {
    "compute_share": "computation_s",
    "communication_share": "communication_s",
    "init_share": "init_s",
}


def profile_results(folder: Path, client: int, parameters: Mapping[str, object]) -> list[Result]:
    """Shares of all ranks' time, messages and their bytes; nothing where no profile was asked for.

    Messages are left out when the program used requests whose sizes are not kept.
    """
    if not parameters["profile"]:
        return []
    name = f"mpiprof.{client}.json"
    total = _total(folder / name, name)
    whole = number(name, total, "total_s")
    if whole == 0:
        raise OutputError(name, "a run of no time cannot be")
    found = []
    for metric, key in SHARES.items():
        # A counter of one processor may be some ticks ahead of another's.
        share = max(0.0, _signed(name, total, key) / whole)
        if share > 1:
            raise OutputError(name, f"{key} is more than total_s")
        found.append(Result(metric, share, "1", 1))
    if number(name, total, "calls_without_size") == 0:
        found.append(Result("messages", number(name, total, "messages"), "messages", 1))
        found.append(Result("message_bytes", number(name, total, "message_bytes"), "bytes", 1))
    return found


def _total(path: Path, name: str) -> dict[str, object]:
    try:
        document = json.loads(read_regular(path, MOST_BYTES))
    except FileNotFoundError as error:
        message = "missing: the program did not reach MPI_Finalize, or is not an MPI program"
        raise OutputError(name, message) from error
    except (OSError, ValueError, RecursionError) as error:
        raise OutputError(name, f"cannot be read: {error}") from error
    if not isinstance(document, dict) or document.get("format") != "steelyard-mpiprof":
        raise OutputError(name, "no profile of steelyard-mpiprof")
    total = document.get("total")
    if document.get("version") not in VERSIONS or not isinstance(total, dict):
        raise OutputError(name, f"no profile of the versions {VERSIONS} with a 'total'")
    return total


def _signed(name: str, total: dict[str, object], key: str) -> float:
    value = total.get(key)
    return value if isinstance(value, float) else number(name, total, key)
