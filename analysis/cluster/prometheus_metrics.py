"""Writes a cluster's sums as counters in Prometheus' text format, for node_exporter.

node_exporter's textfile collector reads the file. Counters include all jobs ever collected and
never decrease: Prometheus would take a smaller value for a restart and count everything again. So
the existing file is read first. https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.cluster import day_files
from steelyard.analysis.cluster.top import Line, compute_sums, make_duckdb_engine
from steelyard.jobscripts.regular_files import OddFileError, read_regular

OTHERS = "(others)"
USER = "user"
MOST_BYTES = 64 << 20
# For each grouping, its part of the metric's name and its label. Slurm's own metrics have the same
# labels user, account and partition (src/plugins/metrics/openmetrics).
GROUPS = {
    USER: ("user", "username"),
    "account": ("account", "account"),
    "partition": ("partition", "partition"),
    "node-type": ("node_type", "node_type"),
}
# The rest of a metric's name, the quantity of `top`, and its description. Each has a second metric:
# the number of jobs for which the quantity is known.
COUNTERS = {
    "energy_joules": ("energy_j", "Energy of the nodes of jobs that had them for themselves."),
    "cpu_seconds": ("cpu_s", "CPU time used."),
    "cpu_allocated_seconds": ("cpu_allocated_s", "CPUs given times elapsed time."),
    "cpu_unused_seconds": ("cpu_unused_s", "CPUs given times elapsed time, less CPU time used."),
    "memory_unused_byte_seconds": (
        "memory_unused_byte_s",
        "Memory given less the highest use, times elapsed time.",
    ),
    "read_bytes": ("read_bytes", "Bytes from storage."),
    "written_bytes": ("write_bytes", "Bytes to storage."),
}
SAMPLE = re.compile(r'(\w+)\{cluster="((?:[^"\\]|\\.)*)"(?:,\w+="((?:[^"\\]|\\.)*)")?\} (\S+)')
DATABASE = "# steelyard database "


@dataclass(slots=True)
class PreviousMetrics:
    """The content of the existing file: values by metric and by name of the user, account, …"""

    database: str | None = None
    values: dict[tuple[str, str], float] = field(default_factory=dict)

    def find_names(self, metric: str) -> list[str]:
        """Return the names that have their own line for this metric."""
        return [name for found, name in self.values if found == metric and name != OTHERS]


def format_metrics(database_dir: Path, most: int, file: Path | None, users: bool = False) -> str:
    """Return the metrics. The `most` largest names of each group have their own lines.

    All others are summed in one line. `file` is the existing file; None: there is none. `users`:
    add a group by user names.
    """
    groups = [name for name in GROUPS if users or name != USER]
    found, mark = day_files.query_jobs(
        database_dir,
        lambda base, mark: (compute_sums(make_duckdb_engine(base), groups, day_files.EVER), mark),
    )
    before = read_previous_metrics(file)
    if before.database != mark["database_id"]:
        before = PreviousMetrics()  # another database: its counters restart
    cluster = escape_label(str(mark["cluster"] or ""))
    lines = [f"{DATABASE}{mark['database_id']}"]
    for by, sums in found.lines.items():
        lines += format_group(by, sums, most, before, cluster)
    lines += format_gauges(mark, cluster)
    return "\n".join(lines) + "\n"


def format_group(
    by: str, sums: Sequence[Line], most: int, before: PreviousMetrics, cluster: str
) -> Iterator[str]:
    """Yield all counters of one grouping (by user, account, …)."""
    group_name, label = GROUPS[by]
    jobs = f"steelyard_{group_name}_jobs_total"
    if (jobs, OTHERS) in before.values:
        most = 0  # a new own line would repeat what `(others)` contains
    chosen = choose_names(sums, before.find_names(jobs), most)

    def format_family(
        name: str, description: str, values: Mapping[str, float | None]
    ) -> Iterator[str]:
        yield f"# HELP {name} {description}"
        yield f"# TYPE {name} counter"
        for who, value in values.items():
            if value is not None:
                value = max(value, before.values.get((name, who), value))
                yield f'{name}{{cluster="{cluster}",{label}="{escape_label(who)}"}} {value!r}'

    description = "Jobs that had nodes and ended, a requeued one once for each start."
    yield from format_family(
        jobs, description, {who: float(line.jobs) for who, line in chosen.items()}
    )
    for rest, (quantity, meaning) in COUNTERS.items():
        name = f"steelyard_{group_name}_{rest}"
        values = {who: line.values[quantity] for who, line in chosen.items()}
        known = {who: float(line.known[quantity]) for who, line in chosen.items()}
        yield from format_family(f"{name}_total", meaning, values)
        yield from format_family(f"{name}_known_jobs_total", "Jobs of which that is known.", known)


def choose_names(lines: Iterable[Line], had: Iterable[str], most: int) -> dict[str, Line]:
    """Return the lines by name: names that had a line, then the largest.

    A name that is part of `(others)` stays there, since no counter may decrease.
    """
    every = {line.name: line for line in lines}
    retained = [name for name in had if name in every]
    size = sorted(every, key=lambda name: (-(every[name].values["cpu_allocated_s"] or 0.0), name))
    own = list(dict.fromkeys([*retained, *size]))[: max(most, len(retained))]
    chosen = {name: every[name] for name in own}
    rest = [line for name, line in every.items() if name not in chosen]
    return chosen | ({OTHERS: sum_lines(rest)} if rest else {})


def sum_lines(lines: list[Line]) -> Line:
    """Return the sum of several lines."""
    values = {}
    for name in lines[0].values:
        found = [value for line in lines if (value := line.values[name]) is not None]
        values[name] = sum(found) if found else None
    known = {name: sum(line.known[name] for line in lines) for name in lines[0].known}
    jobs, marked = sum(line.jobs for line in lines), sum(line.marked for line in lines)
    return Line(OTHERS, jobs, marked, values, known)


def format_gauges(mark: Mapping[str, Any], cluster: str) -> Iterator[str]:
    """Yield gauges: until when jobs were collected, and how many are running."""
    gauges = {
        "steelyard_collected_timestamp_seconds": (
            mark["queried_until_unix_s"],
            "Until when the accounting has been collected.",
        ),
        "steelyard_jobs_running": (mark["running"], "Jobs that ran then: in no counter."),
    }
    for name, (value, description) in gauges.items():
        yield f"# HELP {name} {description}"
        yield f"# TYPE {name} gauge"
        if value is not None:
            yield f'{name}{{cluster="{cluster}"}} {float(value)!r}'


def escape_label(text: str) -> str:
    """Escape text for a label's value."""
    safe = text.encode("utf-8", "replace").decode("utf-8")
    return safe.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def unescape_label(text: str) -> str:
    """Undo `escape_label`."""
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], text)


def read_previous_metrics(file: Path | None) -> PreviousMetrics:
    """Read the existing file; ignore lines that are not Steelyard's."""
    before = PreviousMetrics()
    try:
        text = "" if file is None else read_regular(file, MOST_BYTES).decode("utf-8", "replace")
    except FileNotFoundError:
        return before
    except OddFileError as error:
        raise MissingError(f"{file} is no file of metrics ({error}): name another one") from None
    for line in text.split("\n"):
        if line.startswith(DATABASE):
            before.database = line.removeprefix(DATABASE)
        elif (match := SAMPLE.fullmatch(line)) and match[3] is not None:
            before.values[match[1], unescape_label(match[3])] = float(match[4])
    return before
