"""Partitions and nodes as scontrol shows them, and which of them a batch may use."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping

from steelyard.wrappers.schedulers.available_nodes import (
    AvailableNodes,
    Node,
    max_known,
    select_nodes,
)
from steelyard.wrappers.schedulers.base import Batch
from steelyard.wrappers.schedulers.slurm import command
from steelyard.wrappers.schedulers.slurm.script import PLAIN_CONSTRAINT, condition_options
from steelyard.wrappers.study.job_settings import time_limit_s

# Slurm starts a node for a job if power saving has switched it off or will (POWERED_DOWN,
# POWER_DOWN).
DOWN = re.compile(r"\bDOWN|DRAIN|FAIL|MAINT|NOT_RESPONDING|\*|POWERING_DOWN|UNKNOWN", re.IGNORECASE)
WORD = re.compile(r"(\S+?)=(Linux \S+|\S*)")  # OS=Linux 6.1.0-18-amd64 #1 SMP …

Row = Mapping[str, str]


def read_rows(what: str) -> list[Row]:
    """Return the rows of `scontrol -o show node|partition`, each as keys and values."""
    text = command.run(["scontrol", "-o", "show", what])
    return [dict(WORD.findall(line)) for line in text.splitlines() if "=" in line]


def parse_nodes(found: Iterable[Row]) -> Iterator[Node]:
    """Yield all nodes of the cluster."""
    for row in found:
        threads = parse_number(row.get("ThreadsPerCore")) or 1
        cpus = parse_number(row.get("CPUTot"))
        state = row.get("State", "UNKNOWN")
        is_up = not DOWN.search(state)
        yield Node(
            name=row.get("NodeName", "?"),
            features=split_list(row.get("AvailableFeatures")),
            partitions=split_list(row.get("Partitions")),
            up=is_up,
            idle=is_up and state.partition("+")[0] == "IDLE" and "_DOWN" not in state,
            cores=None if cpus is None else cpus // threads,
            watts=parse_number(row.get("CurrentWatts")) or None,
            kernel=row.get("OS", "").partition("Linux ")[2] or None,
        )


def find_available_nodes(
    batch: Batch, every: Iterable[Node], partitions: Iterable[Row]
) -> AvailableNodes:
    """Return the nodes that a batch may use."""
    found = {row.get("PartitionName", "?"): row for row in partitions}
    names = requested_partitions(batch, found)
    there = [node for node in every if not names or node.partitions & set(names)]
    suited, lacking = select_nodes(there, requested_features(batch))
    own = [found[name] for name in names if name in found]
    return AvailableNodes(
        name=f"partition {','.join(names)}" if names else "the cluster",
        nodes=suited,
        known_features=frozenset(one for node in there for one in node.features),
        missing_feature=lacking,
        max_nodes=max_limit(parse_number(row.get("MaxNodes")) for row in own),
        max_time_s=max_limit(time_limit_s(row.get("MaxTime", "")) for row in own),
        any_cores=max_known(node.cores for node in there),
        up=not own or any(row.get("State") == "UP" for row in own),
    )


def requested_partitions(batch: Batch, found: Mapping[str, Row]) -> list[str]:
    """Return the study's partitions, else those of SBATCH_PARTITION, else the default partition."""
    options = (*batch.options, *batch.job.options)
    requested = [o.partition("=")[2] for o in options if o.startswith(("--partition=", "-p="))]
    text = (
        batch.job.partition or next(iter(requested), "") or os.environ.get("SBATCH_PARTITION", "")
    )
    default = [name for name, row in found.items() if row.get("Default") == "YES"]
    return text.split(",") if text else default


def requested_features(batch: Batch) -> list[str]:
    """Return the features of `a&b`; other constraints are not evaluated."""
    found = [option.partition("=")[2] for option in condition_options(batch)
             if option.startswith("--constraint=")]  # fmt: skip
    plain = [text for text in found if PLAIN_CONSTRAINT.fullmatch(text)]
    return [feature for text in plain for feature in text.split("&")]


def max_limit(values: Iterable[int | None]) -> int | None:
    """Return the largest limit; None if any of them is unlimited."""
    known = list(values)
    return None if None in known else max_known(known)


def split_list(text: str | None) -> frozenset[str]:
    """Split a comma-separated list; `(null)` is empty."""
    return frozenset(item for item in (text or "").split(",") if item and item != "(null)")


def parse_number(text: str | None) -> int | None:
    """Return an integer; None for `UNLIMITED`, `n/s`, `n/a`."""
    return int(text) if text is not None and text.isdigit() else None
