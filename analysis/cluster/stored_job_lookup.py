"""Reads one job from a cluster's database when its records or accounting rows no longer exist.

It reads the Parquet files of the job's day, as `top` does. It takes no lock and waits only until
the files are consistent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from duckdb import DuckDBPyConnection

from steelyard.analysis.base.errors import MissingError, UsageError
from steelyard.analysis.cluster import day_files, job_row
from steelyard.analysis.cluster.database import BESIDES, build_document
from steelyard.analysis.collect.job_index import find_earlier_starts
from steelyard.analysis.job.job_lookup import natural_sort_key
from steelyard.analysis.job.job_view import JobView, NodeView
from steelyard.analysis.sources.accounting import AccountingRow, Allocation
from steelyard.analysis.sources.records import COLUMNS, Record
from steelyard.analysis.store import sample_store
from steelyard.analysis.store.row_files import quote_path
from steelyard.jobscripts.plurals import counted

NAME = "the cluster's database"
LACKS = "without tags, conditions, GPUs and samples"
NOT_KEPT = f"{NAME} does not have it"
PATIENCE_S = 1.0  # seconds; a user is waiting
USED = (*job_row.QUANTITIES, "memory_used_bytes")
Cells = Mapping[str, Any]
# The job and the tasks of an array. The conditions of each half let DuckDB skip files without the
# id.
STARTS = """
FROM (
    FROM jobs WHERE job_id = $1
    UNION ALL
    FROM jobs WHERE task >= $1 AND task < $3 AND job_id <> $1
        AND (task = $1 OR starts_with(task, $2))
) ORDER BY coalesce(start_unix_s, submit_unix_s), submit_unix_s
"""


class ClusterDatabase:
    """The database in a folder, as another source for `look_up` of one job."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add_start(self, view: JobView) -> None:
        """Set the job's last start if the accounting lacks it; add problems to `missing`."""
        try:
            found, collected = self.read_starts(view.job_id)
        except MissingError as error:
            view.missing.append(f"{NAME}: {error}")
            return
        if not found:
            return
        check_single_job(view.job_id, found)
        last = found[-1]
        view.row, view.allocation = build_row(last), build_allocation(last)
        view.notes.append(f"the job is as {NAME} {self.folder} has it, collected until {collected}")
        view.earlier_starts, view.other_starts = find_earlier_starts([build_row(c) for c in found])
        view.stored_nodes = {"database": str(self.folder)} | {name: last[name] for name in USED}
        view.stored_nodes |= {name: last[name] for name in ("sources", "missing", "marks", "tags")}

    def read_starts(self, job_id: str) -> tuple[list[Cells], str]:
        """Return every start of a job, the last one last, and until when jobs were collected."""
        if not has_database(self.folder):
            return [], ""

        def query_days(
            connection: DuckDBPyConnection, mark: Mapping[str, Any]
        ) -> tuple[list[Cells], str]:
            connection.execute("SET parquet_metadata_cache = true")  # footers are read once
            rows = connection.execute(STARTS, [job_id, f"{job_id}_", f"{job_id}`"])
            names = [column[0] for column in rows.description]
            found = [decode_cells(dict(zip(names, row, strict=True))) for row in rows.fetchall()]
            return found, format_time(mark.get("queried_until_unix_s"))

        return day_files.query_jobs(self.folder, query_days, PATIENCE_S)

    def add_nodes(self, view: JobView) -> None:
        """Add the stored records of nodes that have no record file."""
        row = view.row
        lacking = set(view.all_nodes) - {node.node for node in view.nodes}
        if row is None or row.end_unix_s is None or not lacking or not has_database(self.folder):
            return
        try:
            found = self.read_records(row)
        except MissingError as error:
            view.missing.append(f"{NAME}: {error}")
            return
        mine = [cells for cells in found if cells["node"] in lacking]
        view.nodes = sorted([*view.nodes, *map(build_node, mine)], key=lambda node: node.node)
        if mine:
            names = ", ".join(cells["node"] for cells in mine)
            view.notes.append(f"the record of {names} is as {self.folder} keeps it, {LACKS}")

    def read_records(self, row: AccountingRow) -> list[Cells]:
        """Return the stored records of one start, ordered by node."""
        day = sample_store.format_day(row.end_unix_s or 0.0)
        file = self.folder / "parquet" / "records" / f"day={day}" / "records.parquet"
        names = ["node", "file", *BESIDES, *COLUMNS]
        cells = ", ".join(f'"{name}"' for name in names)

        def query_days(connection: DuckDBPyConnection, mark: Mapping[str, Any]) -> list[Cells]:
            if not file.exists():
                return []
            rows = connection.execute(
                f"SELECT {cells} FROM read_parquet({quote_path(file)}) WHERE cluster = ? AND "
                "job_id = ? AND submit_unix_s = ? ORDER BY node",
                [*job_row.job_key(row)],
            ).fetchall()
            return [dict(zip(names, row, strict=True)) for row in rows]

        return day_files.query_jobs(self.folder, query_days, PATIENCE_S)


def has_database(folder: Path) -> bool:
    """Whether the folder has a database; raise MissingError if it cannot be read."""
    try:
        return any((folder / "parquet").iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise MissingError(f"{folder} cannot be read: {error.strerror}") from None


def decode_cells(cells: dict[str, Any]) -> Cells:
    """Return the cells with JSON columns decoded."""
    names = ("sources", "missing", "tags")
    return cells | {name: json.loads(cells[name] or "{}") for name in names}


def check_single_job(job_id: str, found: Sequence[Cells]) -> None:
    """Raise UsageError if the id is that of an array with several tasks."""
    tasks = {cells["task"] for cells in found if cells["task"] != cells["job_id"]}
    if len(tasks) > 1 and not any(cells["task"] == job_id for cells in found):
        examples = ", ".join(sorted(tasks, key=natural_sort_key)[:10]) + (
            " …" if len(tasks) > 10 else ""
        )
        raise UsageError(
            f"{job_id} is an array of {counted(len(tasks), 'job')}: ask for one of {examples}",
            job_id,
        )


def build_row(cells: Cells) -> AccountingRow:
    """Return the row of the accounting as it was when it was queried."""
    array, _, task = cells["task"].partition("_")
    names = ("job_id", "restarts", "state", "reason", "cluster", "name", "user", "submit_unix_s")
    times = ("start_unix_s", "end_unix_s", "elapsed_s", "exit_code")
    return AccountingRow(
        step=None,
        array_job_id=array if task else None,
        array_task_id=task or None,
        waits_in_array=False,
        waiting_tasks=(),
        het_offset=None,
        nodes=tuple(cells["nodes"]),
        admin_comment=None,
        **{name: cells[name] for name in (*names, *times)},
    )


def build_allocation(cells: Cells) -> Allocation:
    """Return the job's allocation.

    Its CPU time is the scheduler's, if the scheduler was its source.
    """
    accounted = {name: cells[name] for name in job_row.ACCOUNTED}
    is_accounted = cells["sources"].get("cpu_s") == job_row.SLURM
    return Allocation(
        nodes=len(cells["nodes"]) or None,
        cpu_s=cells["cpu_s"] if is_accounted else None,
        shares_request=cells["task"] != cells["job_id"],
        missing={name: NOT_KEPT for name, value in accounted.items() if value is None},
        **accounted,
    )


def build_node(cells: Cells) -> NodeView:
    """Rebuild a node's view from the stored fields of its record."""
    record = Record(Path(cells["file"]), build_document(cells))
    values = record.columns()
    missing = {column: NOT_KEPT for column in COLUMNS if values[column] is None}
    return NodeView(cells["node"], record, values, missing)


def format_time(unix_s: float | None) -> str:
    """Format a time as `2026-11-24 03:20 UTC`."""
    if unix_s is None:
        return "a time that it does not give"
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
