"""What the client side of a network file system counted in a run: mount.CLIENT.before and .after.

NFS: the mount's part of /proc/self/mountstats, statvers 1.1. `bytes:` (nfs_show_stats(),
fs/nfs/super.c; order as enum nfs_stat_bytecounters, include/linux/nfs_iostat.h): read and written by
read(2) and write(2), the same by O_DIRECT, then what the server sent and was sent. A line of the
per-op statistics (struct rpc_iostats, include/linux/sunrpc/metrics.h): operations, transmissions,
major time-outs, bytes sent, bytes received, and in ms, summed up, queue, round-trip and execution
time.

Lustre: llite's stats, `read_bytes N samples [bytes] MIN MAX SUM`: what read and write calls asked
for, cache included (they are no RPCs).
"""

from __future__ import annotations

import re
from pathlib import Path

from steelyard.jobscripts.errors import OutputError
from steelyard.jobscripts.registry import Result

# Places in the line `bytes:`.
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
LUSTRE = re.compile(
    r"^(read|write)_bytes +(\d+) samples \[bytes\] \d+ \d+ (\d+)(?: \d+)?\s*$",
    re.MULTILINE | re.ASCII,
)
Counts = dict[str, int]


def results(folder: Path, client: int) -> list[Result]:
    """The counters' growth over the run; nothing where nothing was counted."""
    before, after = (_read(folder / f"mount.{client}.{when}") for when in ("before", "after"))
    if not before and not after:
        return []
    part = f"mount.{client}.after"
    kind = {_kind(part, before), _kind(part, after)}
    if kind == {"nfs"}:
        return _nfs(part, _nfs_counts(part, before), _nfs_counts(part, after))
    if kind == {"lustre"}:
        return _lustre(part, _lustre_counts(before), _lustre_counts(after))
    raise OutputError(part, "the mount was another one before the run")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def _kind(part: str, text: str) -> str:
    if text.startswith("device ") and "statvers=1." in text:
        return "nfs"
    if text.startswith("snapshot_time"):
        return "lustre"
    raise OutputError(part, f"neither an NFS mount of mountstats nor Lustre's: {text[:60]!r}")


def _nfs_counts(part: str, text: str) -> Counts:
    counts: Counts = {}
    found = BYTES.findall(text)
    operations = {
        name: [int(word) for word in line.split()] for name, line in OPERATION.findall(text)
    }
    if len(found) != 1 or not {"READ", "WRITE"} <= operations.keys():
        raise OutputError(part, "no 'bytes:' line, or no READ and WRITE operations")
    numbers = [int(word) for word in found[0].split()]
    counts |= {name: numbers[place] for name, place in NFS_BYTES.items()}
    for name in ("READ", "WRITE"):
        line = operations[name]
        counts |= {f"{name}.ops": line[0], f"{name}.rtt_ms": line[6], f"{name}.execute_ms": line[7]}
    counts["retransmissions"] = sum(line[1] - line[0] for line in operations.values())
    return counts


def _grown(part: str, before: Counts, after: Counts) -> Counts:
    grown = {name: value - before.get(name, 0) for name, value in after.items()}
    for name, value in grown.items():
        if value < 0 and name != "retransmissions":  # may shrink: a reply can come in between
            raise OutputError(part, f"{name} has shrunk: the file system was mounted anew")
    return grown


def _nfs(part: str, before: Counts, after: Counts) -> list[Result]:
    grown = _grown(part, before, after)
    found = [Result(name, float(grown[name]), "bytes", 1) for name in NFS_BYTES]
    found.append(Result("nfs_retransmissions", float(max(0, grown["retransmissions"])), "1", 1))
    for name in ("READ", "WRITE"):
        operations = grown[f"{name}.ops"]
        found.append(Result(f"nfs_{name.lower()}_operations", float(operations), "1", 1))
        for time in ("rtt", "execute") if operations else ():
            mean_s = grown[f"{name}.{time}_ms"] / operations / 1000
            found.append(Result(f"nfs_{name.lower()}_{time}_s", mean_s, "s", 1))
    return found


def _lustre_counts(text: str) -> Counts:
    counts = {"read_bytes": 0, "write_bytes": 0, "read_calls": 0, "write_calls": 0}
    for name, calls, size in LUSTRE.findall(text):
        counts |= {f"{name}_calls": int(calls), f"{name}_bytes": int(size)}
    return counts


def _lustre(part: str, before: Counts, after: Counts) -> list[Result]:
    grown = _grown(part, before, after)
    return [
        Result("lustre_read_bytes", float(grown["read_bytes"]), "bytes", 1),
        Result("lustre_written_bytes", float(grown["write_bytes"]), "bytes", 1),
        Result("lustre_read_calls", float(grown["read_calls"]), "1", 1),
        Result("lustre_write_calls", float(grown["write_calls"]), "1", 1),
    ]
