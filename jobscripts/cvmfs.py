"""What a CVMFS client did in a run: cvmfs.CLIENT.before and .after (.N of iteration N), by lib/cvmfs.sh.

The client tells of itself by extended attributes of a repository's folder (CernVM-FS documentation,
"Extended Attributes"; cvmfs/magic_xattr.cc): `rx` KiB transferred, `ndownload` downloads, `nopen`
opened files, `nioerr` failed reads, `hitrate` 100 (1 - downloads / requests to the cache) since it
was mounted, with three decimals or `n/a`. Requests themselves are not told: they follow from it.
"""

from __future__ import annotations

from pathlib import Path

from steelyard.jobscripts.errors import OutputError
from steelyard.jobscripts.registry import Result
from steelyard.jobscripts.userfiles import NOTE_BYTES, read_regular

COUNTED = {
    "cvmfs_fetched_bytes": ("rx", "bytes"),
    "cvmfs_downloads": ("ndownload", "1"),
    "cvmfs_opens": ("nopen", "1"),
    "cvmfs_io_errors": ("nioerr", "1"),
}
KIB = 1024
ROUNDED = 0.0005 / 100  # of the rate: half of its last decimal
MOST_UNSURE = 0.05  # of the rate of a run, else it is not told
Counts = dict[str, dict[str, str]]  # by repository and attribute


def results(folder: Path, client: int, iteration: int = 1) -> list[Result]:
    """Differences over an iteration; nothing where no repository was named."""
    suffix = f".{iteration}" if iteration > 1 else ""
    before, after = (
        _read(folder, f"cvmfs.{client}.{when}{suffix}") for when in ("before", "after")
    )
    if not before and not after:
        return []
    part = f"cvmfs.{client}.after{suffix}"
    if before.keys() != after.keys():
        raise OutputError(part, "other repositories than before the run")
    found = []
    for metric, (key, unit) in COUNTED.items():
        grown = sum(_grown(part, before[one], after[one], key) for one in after)
        value = float(grown * (KIB if key == "rx" else 1))
        found.append(Result(metric, value, unit, iteration))
    rate = _hit_rate(before, after)
    return found if rate is None else [*found, Result("cvmfs_hit_rate", rate, "1", iteration)]


def _read(folder: Path, part: str) -> Counts:
    """Lines of `REPOSITORY KEY VALUE`, a repository's name without blanks."""
    try:
        text = read_regular(folder / part, NOTE_BYTES).decode("utf-8", "replace")
    except OSError:
        return {}
    counts: Counts = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) != 3:
            raise OutputError(part, f"expected REPOSITORY KEY VALUE, found {line[:80]!r}")
        counts.setdefault(words[0], {})[words[1]] = words[2]
    return counts


def _grown(part: str, before: dict[str, str], after: dict[str, str], key: str) -> int:
    try:
        first, last = int(before[key]), int(after[key])
    except (LookupError, ValueError) as error:
        raise OutputError(part, f"expected a number of {key}, found {error}") from error
    if last < first:
        raise OutputError(part, f"{key} has shrunk: the repository was mounted anew in the run")
    return last - first


def _requests(counts: dict[str, str]) -> tuple[float, float] | None:
    """To the cache since the mount, and by how much that may be wrong; None: it is not told."""
    downloads, told = int(counts["ndownload"]), counts.get("hitrate", "")
    if told == "n/a":
        return 0.0, 0.0
    missed = 1.0 - float(told) / 100
    if missed <= ROUNDED:
        return None
    return downloads / missed, downloads * ROUNDED / missed**2


def _hit_rate(before: Counts, after: Counts) -> float | None:
    """Of all repositories together; None where rounding leaves it open."""
    downloads = sum(int(after[one]["ndownload"]) - int(before[one]["ndownload"]) for one in after)
    asked = unsure = 0.0
    for sign, counts in ((1, after), (-1, before)):
        for repository in counts.values():
            found = _requests(repository)
            if found is None:
                return None
            asked += sign * found[0]
            unsure += found[1]
    if asked <= 0 or downloads * unsure / asked**2 > MOST_UNSURE:
        return None
    return min(max(1.0 - downloads / asked, 0.0), 1.0)
