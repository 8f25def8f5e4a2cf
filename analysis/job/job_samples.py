"""Loads the samples of single jobs into a temporary database, as collect does."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.analysis.collect.attempt_building import Attempt
from steelyard.analysis.sources.records import COLUMNS, Record
from steelyard.analysis.store.energy_shares import EnergyShare, IdlePower, compute_energy_shares

if TYPE_CHECKING:
    import duckdb


@contextmanager
def load_samples(
    records: Mapping[str, Record], scratch: Path
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database whose table `samples` has the existing samples of these nodes' records."""
    with load_job_samples({"run": records}, scratch) as connection:
        yield connection


@contextmanager
def load_job_samples(
    jobs: Mapping[str, Mapping[str, Record]], scratch: Path
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Do the same for several jobs. The keys of `jobs` become the `run_id` of their samples."""
    import duckdb

    from steelyard.analysis.collect import sample_import
    from steelyard.analysis.store import sample_store, schema

    files = [
        sample_import.SampleFile(path, str(path), job, "attempt", node)
        for job, records in jobs.items()
        for node, record in records.items()
        if (path := record.samples_path) is not None and path.is_file()
    ]
    with duckdb.connect() as connection:
        connection.execute(schema.build_schema())
        parts = sample_store.Parts(connection, scratch, scratch)
        for _ in sample_import.load_files(connection, files, parts, scratch):
            pass
        parts.refresh()
        yield connection


def compute_sampled_totals(records: Mapping[str, Record]) -> dict[str, dict[str, Any]]:
    """Return the totals of truncated records by node, computed as collect does."""
    from steelyard.analysis.collect import tables, unchanged_attempts

    attempt = Attempt("run", "attempt", "none", "completed", records=dict(records))
    with (
        tempfile.TemporaryDirectory(prefix="steelyard-") as folder,
        load_samples(records, Path(folder)) as connection,
    ):
        unchanged_attempts.store_settled(connection, ())
        tables.write_records(connection, [attempt], Path(folder))
        tables.write_notes(connection, [attempt], Path(folder))
        names = ", ".join(COLUMNS)
        rows = connection.execute(f"SELECT node, {names} FROM records").fetchall()
    return {row[0]: dict(zip(COLUMNS, row[1:], strict=True)) for row in rows}


def compute_job_shares(records: Mapping[str, Record], idle: IdlePower) -> dict[str, EnergyShare]:
    """Return by node which share of its energy can be attributed to the job."""
    idle_by_node = {node: record.get("energy.idle_w") for node, record in records.items()}
    idle = replace(
        idle, configured_w={node: w for node, w in idle_by_node.items() if w is not None}
    )
    with (
        tempfile.TemporaryDirectory(prefix="steelyard-") as folder,
        load_samples(records, Path(folder)) as connection,
    ):
        found = {share.node: share for share in compute_energy_shares(connection, idle)}
    return {node: found.get(node) or make_unknown_share(node) for node in records}


def make_unknown_share(node: str) -> EnergyShare:
    nothing = (None,) * 5
    return EnergyShare("run", "attempt", node, *nothing, reason="its samples are not there")
