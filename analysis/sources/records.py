"""Reads the record of a job on a node (docs/formats.md part 1)."""

from __future__ import annotations

import functools
import marshal
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steelyard.analysis.base.errors import SteelyardError
from steelyard.analysis.store.row_files import parse_json
from steelyard.facts.quantities import TOTALS
from steelyard.jobscripts.regular_files import RECORD_BYTES, read_regular

FORMAT, VERSION = "steelyard-record", 1

# Column of the table `records`: (dotted path in the document, kind).
COLUMNS = {
    "complete": ("complete", "bool"),
    "incomplete_reason": ("incomplete_reason", "text"),
    "node_type": ("probe.node_type", "text"),
    "vm": ("probe.virtualization.vm.name", "text"),
    "container": ("probe.virtualization.container.name", "text"),
    "kernel": ("probe.kernel.release", "text"),
    "cpu_model": ("probe.cpu.model", "text"),
    "exclusive": ("job.exclusive", "bool"),
    "start_unix_s": ("start_unix_s", "float"),
    "end_unix_s": ("end_unix_s", "float"),
    **{
        total.name: (total.path, "float" if total.is_real else "int")
        for total in TOTALS.values()
        if total.in_database
    },
    "tcp_connections": ("tcp.connections", "int"),
    "rtt_readings": ("tcp.rtt_readings", "int"),
    "rtt_floor_s": ("tcp.rtt_floor_s", "float"),
    "rtt_min_s": ("tcp.rtt_min_s", "float"),
    "rtt_median_s": ("tcp.rtt_median_s", "float"),
    "rtt_mean_s": ("tcp.rtt_mean_s", "float"),
    "rtt_sd_s": ("tcp.rtt_sd_s", "float"),
    "rtt_max_s": ("tcp.rtt_max_s", "float"),
    "snd_cwnd_median_segments": ("tcp.snd_cwnd_median_segments", "float"),
    "snd_cwnd_max_segments": ("tcp.snd_cwnd_max_segments", "int"),
    "rcv_space_median_bytes": ("tcp.rcv_space_median_bytes", "float"),
    "rcv_space_max_bytes": ("tcp.rcv_space_max_bytes", "int"),
    "job_retransmitted_segments": ("tcp.job_retransmitted_segments", "int"),
    "samples": ("sampler.samples", "int"),
    "samples_lost": ("sampler.samples_lost", "int"),
    "missed_deadlines": ("sampler.missed_deadlines", "int"),
    "sampler_cpu_s": ("sampler.cpu_s", "float"),
}

# Virtual machines whose kernel counts stolen time as CPU time of the running process.
COUNTS_STOLEN_TIME = frozenset({"uml"})

KINDS: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "list": (list,),
    "object": (dict,),
}
# Fields that are no columns, and their kinds.
OTHERS = {
    "tags": "object",
    "clock.steps": "int",
    "clock.step_s": "float",
    "missing": "object",
    "network_conditions": "object",
    "network_conditions.requested": "text",
    "network_conditions.devices": "list",
    "network_conditions.notes": "list",
    "network.devices": "list",
    "energy.idle_w": "float",
}
INT64 = 1 << 63  # DuckDB's BIGINT
NAME_BYTES = 255  # of a file, on Linux

FILE_NAME = re.compile(r"(?P<node>.+)\.(?P<start>\d+)\.json")


class RecordError(SteelyardError):
    """A record that cannot be used; `kind` is that of the table `gaps`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


# Descriptions of memory.source of a record (docs/formats.md part 1).
LARGEST_PROCESS = "largest process"
CGROUPS = frozenset({"cgroup1", "cgroup2"})
MEMORY_SOURCES = {
    "cgroup1": "the job's cgroup",
    "cgroup2": "the job's cgroup",
    "processes": "sum of resident sets",
    "bpf": "sum of resident sets",
    "rusage": LARGEST_PROCESS,
}


@dataclass(frozen=True, slots=True)
class Record:
    """A record whose fields have been checked."""

    path: Path
    document: Mapping[str, Any]
    checked: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)

    @property
    def node(self) -> str:
        """The node's name in the scheduler."""
        return str(self.document["node"])

    @property
    def complete(self) -> bool:
        """Whether the record is complete; False: it is truncated."""
        return bool(self.document["complete"])

    def has_final_totals(self, of_node: bool) -> bool:
        """Whether the totals of the node (`of_node`) or of the job's processes are final."""
        return self.complete or (of_node and self.get("incomplete_of") == "processes")

    def is_total_final(self, name: str) -> bool:
        """Whether one of TOTALS is final.

        Where processes are missing, CPU time and memory are final if the job's cgroup counted them
        to its end (docs/sampler.md).
        """
        of_processes = TOTALS[name].whose in ("PROCESSES", "REAPED") and name != "gpu_energy_j"
        if self.complete or not of_processes:
            return self.has_final_totals(of_node=True)
        sources = {"cpu_s": "cpu", "cpu_unseen_s": "cpu", "max_memory_bytes": "memory"}
        if self.get("incomplete_of") != "processes" or name not in sources:
            return False
        by_cgroup = {self.get(f"{part}.source") in CGROUPS for part in ("cpu", sources[name])}
        return by_cgroup == {True} and self.get("cpu.unseen_s") is not None

    @property
    def tags(self) -> Mapping[str, str]:
        """The user's tags."""
        tags = self.document.get("tags")
        return {str(k): str(v) for k, v in tags.items()} if isinstance(tags, dict) else {}

    @property
    def samples_path(self) -> Path | None:
        """The path of the samples; None: sampling was off.

        Only a name in the record's folder is used.
        """
        name = self.get("samples_file")
        if not isinstance(name, str) or not name or Path(name).name != name:
            return None
        if "\0" in name or len(os.fsencode(name)) > NAME_BYTES:
            return None
        return self.path.with_name(name)

    def get(self, dotted: str) -> Any:
        """Return a field by its dotted path; None if it or a parent is null or absent."""
        return find_value(self.document, dotted)

    def missing_reason(self, dotted: str) -> str | None:
        """Return the record's reason for a null field, or the reason for an enclosing object."""
        reasons = self.document.get("missing")
        if not isinstance(reasons, dict):
            return None
        while dotted and dotted not in reasons:
            dotted = dotted.rpartition(".")[0]
        return str(reasons[dotted]) if dotted else None

    def columns(self) -> dict[str, Any]:
        """Return the columns of the table `records` that come from the document."""
        if self.checked is not None:
            return dict(self.checked)
        return {column: self.get(path) for column, (path, _) in COLUMNS.items()}


@functools.lru_cache(maxsize=1024)
def split_path(dotted: str) -> tuple[str, ...]:
    """Split `a.b` into a and b."""
    return tuple(dotted.split("."))


def find_value(document: object, dotted: str) -> Any:
    """Return a value by its dotted path through objects, or None."""
    for key in split_path(dotted):
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


def find_number(document: object, dotted: str) -> float | None:
    """Return the number at a dotted path, or None."""
    value = find_value(document, dotted)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def read_record(path: Path) -> Record:
    """Read and check a record; raise RecordError with the problem."""
    try:
        data = read_regular(path, RECORD_BYTES)
    except OSError as error:
        raise RecordError("record", f"{path} cannot be read: {error.strerror}") from None
    return parse_record(path, data)


def parse_record(path: Path, data: bytes) -> Record:
    """Do the same as `read_record` with the content of a file."""
    try:
        document = parse_json(data)
    except (ValueError, RecursionError) as error:
        raise RecordError("record", f"{path} is not JSON: {error}") from None
    if isinstance(document, dict) and isinstance(document.get("probe"), dict):
        document["probe"] = intern_object(document["probe"])
    return check_record(path, document)


MOST_SHARED = 4096
_SHARED: dict[bytes, dict[str, Any]] = {}


def intern_object(found: dict[str, Any]) -> dict[str, Any]:
    """Return one shared object for all equal JSON objects; callers must not change it.

    A node's probe is most of a record and the same in most of its jobs: 20,000 records would need
    800 MB for it.
    """
    key = marshal.dumps(found, 2)  # version 2 has no references: equal objects have equal bytes
    if len(_SHARED) >= MOST_SHARED and key not in _SHARED:
        _SHARED.clear()
    return _SHARED.setdefault(key, found)


def check_record(path: Path, document: object) -> Record:
    """Return the record if its version is known and its fields have their types.

    Raises RecordError otherwise.
    """
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise RecordError("record", f"{path}: expected a document of format '{FORMAT}'")
    if document.get("version") != VERSION:
        raise RecordError(
            "record_version",
            f"{path} is version {document.get('version')!r} of '{FORMAT}', this Steelyard knows "
            f"version {VERSION}: use one as new as that of the node",
        )
    if not isinstance(document.get("node"), str) or not isinstance(document.get("complete"), bool):
        raise RecordError("record", f"{path}: 'node' or 'complete' is missing")
    checked: dict[str, Any] = dict.fromkeys(COLUMNS)
    for parent, fields in CHECKED.items():
        section = find_value(document, parent) if parent else document
        if not isinstance(section, dict):
            continue
        for name, dotted, kind, column in fields:
            value = section.get(name)
            if value is not None and not has_kind(value, kind):
                found = repr(value)[:60]
                message = f"{path}: '{dotted}' is {found}, expected {kind} or null"
                raise RecordError("record", message)
            if column is not None:
                checked[column] = value
    return Record(path, document, checked)


def group_fields_by_object() -> dict[str, list[tuple[str, str, str, str | None]]]:
    """Return the checked fields of each object: name, dotted path, kind, and column or None."""
    found: dict[str, list[tuple[str, str, str, str | None]]] = {}
    columns = [(dotted, kind, column) for column, (dotted, kind) in COLUMNS.items()]
    for dotted, kind, column in (*columns, *((path, kind, None) for path, kind in OTHERS.items())):
        parent, _, name = dotted.rpartition(".")
        found.setdefault(parent, []).append((name, dotted, kind, column))
    return found


CHECKED = group_fields_by_object()


def has_kind(value: object, kind: str) -> bool:
    """Whether the value has this kind.

    True and False are no numbers, and integers must fit 64 bits.
    """
    if isinstance(value, str):
        return kind == "text"
    if isinstance(value, bool):
        return kind == "bool"
    if isinstance(value, int) and not -INT64 <= value < INT64:
        return False
    return isinstance(value, KINDS[kind])


def parse_record_name(path: Path) -> tuple[str, int] | None:
    """Return node and start (whole seconds since 1970) of NODE.START.json; None: another file."""
    match = FILE_NAME.fullmatch(path.name)
    return (match["node"], int(match["start"])) if match else None
