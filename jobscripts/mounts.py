"""Reads the client counters of a network file system from mount.CLIENT.before and .after.

NFS: the mount's section of /proc/self/mountstats, statvers 1.1. `bytes:` (nfs_show_stats(),
fs/nfs/super.c; order as in enum nfs_stat_bytecounters, include/linux/nfs_iostat.h) is read and
written by read(2) and write(2), the same with O_DIRECT, then received from and sent to the server.
A line of the per-op statistics (struct rpc_iostats, include/linux/sunrpc/metrics.h) is operations,
transmissions, major time-outs, bytes sent, bytes received, and sums in ms of queue, round-trip and
execution time.

Lustre: llite's stats, `read_bytes N samples [bytes] MIN MAX SUM`, since 2.14 with a sum of squares.
These are the bytes of read and write calls, including cached ones (they are not RPCs). Also
read_ahead_stats, `hits N samples [pages]` (lustre/llite/lproc_llite.c). A counter of 0 has no line.

GlusterFS: `total_bytes_read = N` of each connection to a brick (client_priv_dump(),
xlators/protocol/client/src/client.c): the client's messages including their headers.

OrangeFS: /sys/fs/orangefs/stats (fs/orangefs/orangefs-sysfs.c): read and write calls of the node.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from steelyard.jobscripts.errors import OutputError
from steelyard.jobscripts.registry import Result

# Indices in the line `bytes:`.
NFS_BYTES = {
    "nfs_read_bytes": 0,
    "nfs_written_bytes": 1,
    "nfs_direct_read_bytes": 2,
    "nfs_direct_written_bytes": 3,
    "nfs_server_read_bytes": 4,
    "nfs_server_written_bytes": 5,
}
OPERATION = re.compile(r"^\s*([A-Z_]+): ((?:\d+ ){7}\d+)(?: \d+)*\s*$", re.MULTILINE | re.ASCII)
BYTES = re.compile(r"^\s*bytes:\s+(\d+(?: \d+){7})\s*$", re.MULTILINE | re.ASCII)
LUSTRE_BYTES = re.compile(
    r"^(read|write)_bytes +(\d+) samples \[bytes\] \d+ \d+ (\d+)(?: \d+)?\s*$",
    re.MULTILINE | re.ASCII,
)
LUSTRE_PAGES = re.compile(r"^(hits|misses) +(\d+) samples \[pages\]", re.MULTILINE | re.ASCII)
BRICK = re.compile(r"^\[xlator\.protocol\.client\.(.+)\.priv\]$", re.MULTILINE)
# By metric: the client's name of a counter; its "read" is from the network.
GLUSTERFS = {
    "glusterfs_received_bytes": "total_bytes_read",
    "glusterfs_sent_bytes": "total_bytes_written",
    "glusterfs_requests": "msgs_sent",
}
ORANGEFS = re.compile(r"^orangefs (read|write)s (\d+)$", re.MULTILINE | re.ASCII)
# By the first characters of the text: the kind of file system.
KINDS = {
    "device ": "nfs",
    "snapshot_time": "lustre",
    "[xlator.protocol.client.": "glusterfs",
    "orangefs ": "orangefs",
}
Counts = dict[str, int]


def results(folder: Path, client: int) -> list[Result]:
    """Return the counters' growth over the run; [] if no counters were recorded."""
    before, after = (_read(folder / f"mount.{client}.{when}") for when in ("before", "after"))
    if not before and not after:
        return []
    file = f"mount.{client}.after"
    kind = _kind(file, after)
    if _kind(file, before) != kind:
        raise OutputError(file, "the mount was another one before the run")
    count, make_results = READERS[kind]
    first, last = count(file, before), count(file, after)
    if first.keys() != last.keys():
        raise OutputError(file, "other operations or bricks than before the run: mounted anew")
    return make_results(_grown(file, first, last))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def _kind(file: str, text: str) -> str:
    kind = next((kind for start, kind in KINDS.items() if text.startswith(start)), "")
    if not kind or (kind == "nfs" and "statvers=1." not in text):
        raise OutputError(
            file,
            "neither an NFS mount of mountstats nor what Lustre, GlusterFS or OrangeFS count: "
            f"{text[:60]!r}",
        )
    return kind


def _grown(file: str, before: Counts, after: Counts) -> Counts:
    grown = {name: value - before[name] for name, value in after.items()}
    for name, value in grown.items():
        if value < 0 and name != "retransmissions":  # may shrink: a reply can arrive in between
            raise OutputError(file, f"{name} has shrunk: the file system was mounted anew")
    return grown


def _make_named_results(grown: Counts, names: dict[str, str]) -> list[Result]:
    """Return metrics that are one counter each; the unit follows from the name."""
    return [
        Result(metric, float(grown[name]), "bytes" if metric.endswith("_bytes") else "1", 1)
        for metric, name in names.items()
    ]


# --- NFS -------------------------------------------------------------------------------------


def _nfs_counts(file: str, text: str) -> Counts:
    found = BYTES.findall(text)
    operations = {
        name: [int(word) for word in line.split()] for name, line in OPERATION.findall(text)
    }
    if len(found) != 1 or not {"READ", "WRITE"} <= operations.keys():
        raise OutputError(file, "no 'bytes:' line, or no READ and WRITE operations")
    numbers = [int(word) for word in found[0].split()]
    counts = {name: numbers[column] for name, column in NFS_BYTES.items()}
    for name in ("READ", "WRITE"):
        line = operations[name]
        counts |= {f"{name}.ops": line[0], f"{name}.rtt_ms": line[6], f"{name}.execute_ms": line[7]}
    lines = operations.values()
    counts["retransmissions"] = sum(line[1] - line[0] for line in lines)
    for name, column in {"requests": 0, "sent": 3, "received": 4}.items():
        counts[name] = sum(line[column] for line in lines)
    return counts


def _nfs(grown: Counts) -> list[Result]:
    grown["retransmissions"] = max(0, grown["retransmissions"])
    rpc = {
        "nfs_retransmissions": "retransmissions",
        "nfs_requests": "requests",
        "nfs_sent_bytes": "sent",
        "nfs_received_bytes": "received",
        "nfs_read_operations": "READ.ops",
        "nfs_write_operations": "WRITE.ops",
    }
    found = _make_named_results(grown, {name: name for name in NFS_BYTES} | rpc)
    for name in ("READ", "WRITE"):
        operations = grown[f"{name}.ops"]
        for time in ("rtt", "execute") if operations else ():
            mean_s = grown[f"{name}.{time}_ms"] / operations / 1000
            found.append(Result(f"nfs_{name.lower()}_{time}_s", mean_s, "s", 1))
    return found


# --- other file systems ----------------------------------------------------------------------


def _lustre_counts(_file: str, text: str) -> Counts:
    counts = {"read_bytes": 0, "write_bytes": 0, "read_calls": 0, "write_calls": 0}
    for name, calls, size in LUSTRE_BYTES.findall(text):
        counts |= {f"{name}_calls": int(calls), f"{name}_bytes": int(size)}
    if text.count("snapshot_time") > 1:  # read_ahead_stats are included
        counts |= {"hits": 0, "misses": 0}
        counts |= {name: int(pages) for name, pages in LUSTRE_PAGES.findall(text)}
    return counts


def _lustre(grown: Counts) -> list[Result]:
    names = {
        "lustre_read_bytes": "read_bytes",
        "lustre_written_bytes": "write_bytes",
        "lustre_read_calls": "read_calls",
        "lustre_write_calls": "write_calls",
    }
    if "hits" in grown:
        names |= {"lustre_readahead_hits": "hits", "lustre_readahead_misses": "misses"}
    return _make_named_results(grown, names)


def _glusterfs_counts(file: str, text: str) -> Counts:
    """Return the counts of each brick: a sum could hide a brick that was reconnected."""
    _, *bricks = BRICK.split(text)
    counts: Counts = {}
    for brick, lines in zip(bricks[::2], bricks[1::2], strict=True):
        fields = dict(line.split(" = ", 1) for line in lines.splitlines() if " = " in line)
        try:
            counts |= {f"{brick} {name}": int(fields[name]) for name in GLUSTERFS.values()}
        except (KeyError, ValueError) as error:
            raise OutputError(file, f"{brick}: expected a number of {error}") from error
    return counts


def _glusterfs(grown: Counts) -> list[Result]:
    sums = {
        name: sum(value for key, value in grown.items() if key.endswith(f" {name}"))
        for name in GLUSTERFS.values()
    }
    return _make_named_results(sums, GLUSTERFS)


def _orangefs_counts(file: str, text: str) -> Counts:
    counts = {name: int(calls) for name, calls in ORANGEFS.findall(text)}
    if counts.keys() != {"read", "write"}:
        raise OutputError(file, f"expected numbers of reads and writes, found {text[:80]!r}")
    return counts


def _orangefs(grown: Counts) -> list[Result]:
    return _make_named_results(
        grown, {"orangefs_read_calls": "read", "orangefs_write_calls": "write"}
    )


READERS: dict[str, tuple[Callable[[str, str], Counts], Callable[[Counts], list[Result]]]] = {
    "nfs": (_nfs_counts, _nfs),
    "lustre": (_lustre_counts, _lustre),
    "glusterfs": (_glusterfs_counts, _glusterfs),
    "orangefs": (_orangefs_counts, _orangefs),
}
