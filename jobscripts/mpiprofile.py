"""Reads the profile of an MPI program (docs/mpi-profile.md) as results of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from steelyard.jobscripts.errors import OutputError
from steelyard.jobscripts.pairs import number
from steelyard.jobscripts.registry import Result
from steelyard.jobscripts.regular_files import read_regular

MOST_BYTES = 1 << 30
# In version 1 the threads' times were summed, which may exceed the elapsed time.
VERSIONS = (1, 2)
# By field of a profile, in its order: the results for its share and its seconds.
PARTS = {
    "computation_s": ("compute_share", "compute_s"),
    "communication_s": ("communication_share", "communication_s"),
    "init_s": ("init_share", "init_s"),
}


def profile_results(folder: Path, client: int, parameters: Mapping[str, object]) -> list[Result]:
    """Return shares of all ranks' time, mean seconds per rank, messages and their bytes.

    The result is [] if no profile was requested. Messages are omitted if the program used requests
    whose sizes are not recorded.
    """
    if not parameters["profile"]:
        return []
    name = f"mpiprof.{client}.json"
    total, ranks = _total(folder / name, name)
    total_s = number(name, total, "total_s")
    if total_s == 0:
        raise OutputError(name, "a run of no time cannot be")
    found = []
    for key, (share_metric, seconds_metric) in PARTS.items():
        # A processor's counter may be some ticks ahead of another's.
        share = max(0.0, _signed(name, total, key) / total_s)
        if share > 1:
            raise OutputError(name, f"{key} is more than total_s")
        found.append(Result(share_metric, share, "1", 1))
        found.append(Result(seconds_metric, share * total_s / ranks, "s", 1))
    if number(name, total, "calls_without_size") == 0:
        found.append(Result("messages", number(name, total, "messages"), "messages", 1))
        found.append(Result("message_bytes", number(name, total, "message_bytes"), "bytes", 1))
    return found


def _total(path: Path, name: str) -> tuple[dict[str, object], int]:
    """Return the sums over all ranks, and the number of ranks."""
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
    ranks = document.get("ranks")
    if not isinstance(ranks, list) or not ranks:
        raise OutputError(name, "no profile: it lists no 'ranks'")
    return total, len(ranks)


def _signed(name: str, total: dict[str, object], key: str) -> float:
    value = total.get(key)
    return value if isinstance(value, float) else number(name, total, key)
