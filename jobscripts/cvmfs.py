"""Reads a CVMFS client's counters around a run, which lib/mounts.sh wrote.

The files are cvmfs.CLIENT.before and .after, with .N for iteration N. The client reports in
extended attributes of a repository's folder (CernVM-FS documentation, "Extended Attributes";
cvmfs/magic_xattr.cc): `rx` KiB transferred, `ndownload` downloads, `nopen` opened files, `nioerr`
failed reads, and `hitrate` 100 (1 - downloads / requests to the cache) since the mount, with three
decimals or `n/a`. The number of requests is computed from the hit rate.
"""

from __future__ import annotations

from pathlib import Path

from steelyard.jobscripts.errors import OutputError
from steelyard.jobscripts.registry import Result
from steelyard.jobscripts.regular_files import NOTE_BYTES, read_regular

COUNTED = {
    "cvmfs_fetched_bytes": ("rx", "bytes"),
    "cvmfs_downloads": ("ndownload", "1"),
    "cvmfs_opens": ("nopen", "1"),
    "cvmfs_io_errors": ("nioerr", "1"),
}
KIB = 1024
ROUNDED = 0.0005 / 100  # half of the last decimal of the rate
MOST_UNSURE = 0.05  # largest error of a run's rate; a less certain rate is omitted
Counts = dict[str, dict[str, str]]  # by repository and attribute


def results(folder: Path, client: int, iteration: int = 1) -> list[Result]:
    """Return the growth of the counters in an iteration; [] if no repository was named."""
    suffix = f".{iteration}" if iteration > 1 else ""
    before, after = (
        _read(folder, f"cvmfs.{client}.{when}{suffix}") for when in ("before", "after")
    )
    if not before and not after:
        return []
    file = f"cvmfs.{client}.after{suffix}"
    if before.keys() != after.keys():
        raise OutputError(file, "other repositories than before the run")
    found = []
    for metric, (key, unit) in COUNTED.items():
        grown = sum(_grown(file, before[one], after[one], key) for one in after)
        value = float(grown * (KIB if key == "rx" else 1))
        found.append(Result(metric, value, unit, iteration))
    rate = _hit_rate(before, after)
    return found if rate is None else [*found, Result("cvmfs_hit_rate", rate, "1", iteration)]


def _read(folder: Path, file: str) -> Counts:
    """Return the counters of a file of lines `REPOSITORY KEY VALUE`; {} if it cannot be read."""
    try:
        text = read_regular(folder / file, NOTE_BYTES).decode("utf-8", "replace")
    except OSError:
        return {}
    counts: Counts = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) != 3:
            raise OutputError(file, f"expected REPOSITORY KEY VALUE, found {line[:80]!r}")
        counts.setdefault(fields[0], {})[fields[1]] = fields[2]
    return counts


def _grown(file: str, before: dict[str, str], after: dict[str, str], key: str) -> int:
    try:
        first, last = int(before[key]), int(after[key])
    except (LookupError, ValueError) as error:
        raise OutputError(file, f"expected a number of {key}, found {error}") from error
    if last < first:
        raise OutputError(file, f"{key} has shrunk: the repository was mounted anew in the run")
    return last - first


def _requests(counts: dict[str, str]) -> tuple[float, float] | None:
    """Return the requests to the cache since the mount, and their uncertainty; None: unknown."""
    downloads, hit_rate = int(counts["ndownload"]), counts.get("hitrate", "")
    if hit_rate == "n/a":
        return 0.0, 0.0
    missed = 1.0 - float(hit_rate) / 100
    if missed <= ROUNDED:
        return None
    return downloads / missed, downloads * ROUNDED / missed**2


def _hit_rate(before: Counts, after: Counts) -> float | None:
    """Return the hit rate of all repositories together; None if rounding makes it too uncertain."""
    downloads = sum(int(after[one]["ndownload"]) - int(before[one]["ndownload"]) for one in after)
    lookups = unsure = 0.0
    for sign, counts in ((1, after), (-1, before)):
        for repository in counts.values():
            found = _requests(repository)
            if found is None:
                return None
            lookups += sign * found[0]
            unsure += found[1]
    if lookups <= 0 or downloads * unsure / lookups**2 > MOST_UNSURE:
        return None
    return min(max(1.0 - downloads / lookups, 0.0), 1.0)
