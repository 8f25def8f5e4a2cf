"""Writes the results of `collect` into the tables of the database."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from duckdb import DuckDBPyConnection

from steelyard.analysis.collect import checks, network, run_output_import
from steelyard.analysis.collect.attempt_building import Attempt
from steelyard.analysis.collect.record_import import Gap
from steelyard.analysis.collect.run_output_import import Output
from steelyard.analysis.collect.unchanged_attempts import SETTLED, Key
from steelyard.analysis.sources.records import COLUMNS as RECORD_COLUMNS
from steelyard.analysis.sources.study_files import Plan, PlannedRun
from steelyard.analysis.store.database import SCHEMA_VERSION, read_table_columns, replace_rows
from steelyard.analysis.store.row_files import Spool
from steelyard.facts.quantities import TOTALS
from steelyard.jobscripts.regular_files import NOTE_BYTES, read_regular

ATTEMPT_COLUMNS = (
    "run_id",
    "attempt",
    "scheduler",
    "cluster",
    "job_id",
    "array_job_id",
    "array_task_id",
    "restart_count",
    "state",
    "reason",
    "start_unix_s",
    "end_unix_s",
    "elapsed_s",
    "wait_s",
    "exit_code",
    "clients",
    "tries",
    "nodes",
    "stamp",
)

# The last sample of each truncated record. NULL is an unknown total. A process always has memory,
# so that 0 means that no process was sampled.
LAST_SAMPLES = """
SELECT run_id, attempt, node, {largest}, count(*) AS samples, max(unix_s) AS end_unix_s,
    unnest(arg_max_null(struct_pack({last}), elapsed_s))
FROM samples SEMI JOIN (SELECT * FROM spooled WHERE NOT complete) USING (run_id, attempt, node)
GROUP BY run_id, attempt, node
"""


# Totals of the table `records` that are also columns of samples.
SAMPLED = tuple(total for total in TOTALS.values() if total.in_database and total.column)


def make_last_samples_sql() -> str:
    """Return LAST_SAMPLES with the columns of SAMPLED."""
    largest = (f"nullif(max({t.column}), 0) AS {t.name}" for t in SAMPLED if t.is_largest)
    last = (f"{t.name} := {t.column}" for t in SAMPLED if not t.is_largest)
    return LAST_SAMPLES.format(largest=", ".join(largest), last=", ".join(last))


def write_meta(
    connection: DuckDBPyConnection, study_dir: Path, plan: Plan, scratch: Path, now_unix_s: float
) -> None:
    """Write the one row of `meta`."""
    file = study_dir / "study.toml"
    toml = read_regular(file, NOTE_BYTES) if file.is_file() else None
    digest = hashlib.sha256(toml).hexdigest() if toml is not None else None
    session = plan.study.get("session") or {}
    with Spool(scratch / "meta.jsonl", read_table_columns(connection, "meta")) as spool:
        spool.write(
            (
                SCHEMA_VERSION,
                str(plan.study.get("name") or study_dir.stem),
                plan.study.get("seed"),
                None if toml is None else toml.decode("utf-8", "replace"),
                digest,
                importlib.metadata.version("steelyard"),
                now_unix_s,
                plan.study.get("baseline"),
                plan.study.get("factors"),
                plan.study.get("scaling"),
                *(session.get(name) for name in ("name", "number", "began_unix_s", "seed")),
            )
        )
    replace_rows(connection, "meta", spool)


def write_attempts(
    connection: DuckDBPyConnection, attempts: Iterable[Attempt], scratch: Path
) -> None:
    """Write the table `attempts`."""
    with Spool(scratch / "attempts.jsonl", read_table_columns(connection, "attempts")) as spool:
        for attempt in attempts:
            spool.write([getattr(attempt, name) for name in ATTEMPT_COLUMNS])
    replace_rows(connection, "attempts", spool)


def read_invalid_reasons(connection: DuckDBPyConnection) -> dict[Key, str | None]:
    """Return what an earlier collect found for runs whose counting attempt is settled."""
    rows = connection.execute(
        f"SELECT run_id, attempt, invalid_reason FROM runs SEMI JOIN {SETTLED} USING (run_id, attempt)"
    ).fetchall()
    return {(run_id, attempt): reason for run_id, attempt, reason in rows}


def find_invalid_reason(run: PlannedRun, last: Attempt) -> str | None:
    """Return why a completed run was not executed under its levels; None: it was."""
    reasons = (
        check(run, last)
        for check in (
            checks.check_network,
            checks.check_kernel_release,
            checks.check_cache,
            checks.check_suspension,
        )
    )
    return "; ".join(filter(None, reasons)) or None


def write_runs(
    connection: DuckDBPyConnection, plan: Plan, attempts: Iterable[Attempt], scratch: Path
) -> dict[str, int]:
    """Write the table `runs`; return the number of runs in each state."""
    known = read_invalid_reasons(connection)
    of_run: dict[str, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        of_run[attempt.run_id].append(attempt)
    states: dict[str, int] = defaultdict(int)
    with Spool(scratch / "runs.jsonl", read_table_columns(connection, "runs")) as spool:
        for run in plan.runs:
            mine = of_run[run.run_id]
            last = max(mine, key=lambda a: (a.order, a.attempt), default=None)
            state = last.state if last is not None else "planned"
            states[state] += 1
            invalid = None
            if last is not None and state == "completed":
                key = (last.run_id, last.attempt)
                invalid = known[key] if key in known else find_invalid_reason(run, last)
            spool.write(
                (
                    run.run_id,
                    run.block,
                    run.position,
                    run.benchmark,
                    run.variant,
                    run.parameters,
                    run.condition,
                    run.condition_label,
                    run.is_baseline,
                    run.repeat,
                    len(mine),
                    last.attempt if last is not None else None,
                    state,
                    last.reason if last is not None else None,
                    invalid is None if state == "completed" else None,
                    invalid,
                )
            )
    replace_rows(connection, "runs", spool)
    return dict(states)


def write_results(
    connection: DuckDBPyConnection, outputs: Mapping[tuple[str, str], Output], scratch: Path
) -> None:
    """Write the table `results`; the key of `outputs` is run and attempt."""
    with Spool(scratch / "results.jsonl", read_table_columns(connection, "results")) as spool:
        for key, output in outputs.items():
            for f in output.figures:
                spool.write(
                    (*key, f.client, f.iteration, f.metric, f.value, f.unit, f.better, f.is_primary)
                )
    replace_rows(connection, "results", spool, SETTLED)


def write_output_notes(
    connection: DuckDBPyConnection, outputs: Mapping[Key, Output], scratch: Path
) -> None:
    """Write the table `notes`."""
    with Spool(scratch / "notes.jsonl", read_table_columns(connection, "notes")) as spool:
        for key, output in outputs.items():
            for client, note in output.notes:
                spool.write((*key, client, *note))
    replace_rows(connection, "notes", spool, SETTLED)


def write_records(
    connection: DuckDBPyConnection, attempts: Iterable[Attempt], scratch: Path
) -> None:
    """Write the table `records`. The samples must have been imported."""
    columns = read_table_columns(connection, "records")
    with Spool(scratch / "records.jsonl", columns) as records:
        for attempt in attempts:
            for node, record in attempt.records.items():
                key = (attempt.run_id, attempt.attempt, node)
                found = record.columns()
                records.write((*key, *(found[c] for c in RECORD_COLUMNS), record.document))
    connection.execute(f"CREATE OR REPLACE TEMP TABLE spooled AS {records.select()}")
    replaced = {total.name for total in SAMPLED} | {"samples", "end_unix_s"}
    values = ", ".join(
        f"CASE WHEN l.samples IS NULL THEN s.{name} ELSE l.{name} END AS {name}"
        if name in replaced
        else f"s.{name}"
        for name in columns
    )
    replace_rows(
        connection,
        "records",
        f"SELECT {values} FROM spooled AS s "
        f"LEFT JOIN ({make_last_samples_sql()}) AS l USING (run_id, attempt, node)",
        SETTLED,
    )


def write_notes(connection: DuckDBPyConnection, attempts: Iterable[Attempt], scratch: Path) -> None:
    """Write the tables `tags`, `environment` and `spans`."""
    columns = {
        name: read_table_columns(connection, name) for name in ("tags", "environment", "spans")
    }
    with (
        Spool(scratch / "tags.jsonl", columns["tags"]) as tags,
        Spool(scratch / "environment.jsonl", columns["environment"]) as environment,
        Spool(scratch / "spans.jsonl", columns["spans"]) as spans,
    ):
        for attempt in attempts:
            run = (attempt.run_id, attempt.attempt)
            for (node, key), value in run_output_import.read_tags(attempt).items():
                tags.write((*run, node, key, value))
            for used in run_output_import.read_used_files(attempt):
                environment.write((*run, *dataclasses.astuple(used)))
            for span in run_output_import.read_spans(attempt):
                spans.write((*run, *dataclasses.astuple(span)))
    for spool in (tags, environment, spans):
        replace_rows(connection, spool.path.stem, spool, SETTLED)


def write_network(
    connection: DuckDBPyConnection, attempts: Iterable[Attempt], scratch: Path
) -> None:
    """Write the table `network`: a row for each record with network conditions."""
    with Spool(scratch / "network.jsonl", read_table_columns(connection, "network")) as spool:
        for attempt in attempts:
            for node, record in attempt.records.items():
                document = network.find_conditions(record)
                if document is not None:
                    found = network.read_columns(document)
                    spool.write((attempt.run_id, attempt.attempt, node, *found.values()))
    replace_rows(connection, "network", spool, SETTLED)


def write_gaps(connection: DuckDBPyConnection, gaps: Sequence[Gap], scratch: Path) -> None:
    """Write the table `gaps`."""
    with Spool(scratch / "gaps.jsonl", read_table_columns(connection, "gaps")) as spool:
        for gap in gaps:
            spool.write((gap.run_id, gap.attempt, gap.node, gap.kind, gap.reason))
    replace_rows(connection, "gaps", spool)
