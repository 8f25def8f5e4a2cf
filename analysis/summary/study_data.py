"""Reads the study's database for the report (docs/formats.md part 8)."""

from __future__ import annotations

import functools
import json
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.analysis.base import level_names
from steelyard.analysis.base.benchmark_traits import has_time_order, is_elapsed_figure
from steelyard.analysis.sources.pbs.job_starts import SERVER_LOG
from steelyard.analysis.sources.study_files import Scaling, read_scaling
from steelyard.analysis.stats.drift_and_warm_up import MIN_ITERATIONS
from steelyard.analysis.stats.number_format import parse_percent
from steelyard.analysis.store import sample_store
from steelyard.analysis.store.energy_shares import IdlePower
from steelyard.analysis.summary import tags_and_programs
from steelyard.analysis.summary.database_connection import open_database
from steelyard.analysis.summary.gpu_and_pressure import (
    GPU_ENERGY,
    PRESSURE,
    read_gpu_energy,
    read_pressure,
)
from steelyard.analysis.summary.meter_disagreements import MeterDisagreement, read_meters
from steelyard.analysis.summary.network import NodeNetwork, read_network
from steelyard.analysis.summary.shared_node_energy import METRICS as ENERGY_SHARES
from steelyard.analysis.summary.shared_node_energy import Values, read_energy_metrics
from steelyard.analysis.summary.span_metrics import UNITS as SPAN_UNITS
from steelyard.analysis.summary.span_metrics import read_span_metrics
from steelyard.analysis.summary.study_run import Condition, Run
from steelyard.analysis.summary.tags_and_programs import Program, TagValue
from steelyard.analysis.summary.usage_scope import Found as UsageSources
from steelyard.analysis.summary.usage_scope import read_usage_sources
from steelyard.facts.quantities import METRICS
from steelyard.jobscripts.plurals import counted, inflect

if TYPE_CHECKING:
    import duckdb
    from duckdb import DuckDBPyConnection

SMALLEST, LARGEST = 1e-100, 1e100  # besides 0; values beyond these are no measurements


@dataclass(frozen=True)
class Meta:
    """The metadata of the database."""

    study: str  # NAME, or NAME@SESSION
    seed: int | None
    toml: str | None
    toml_sha256: str | None
    steelyard: str
    collected_unix_s: float
    baseline: Condition
    factors: dict[str, list[Any]]
    scaling: Scaling | None = None
    equivalent: float | None = None  # smaller overheads in either direction count as none
    # How much worse a figure may be: tolerated_levels.py computes how far.
    tolerate: float | None = None

    @functools.cached_property
    def level_texts(self) -> level_names.Texts:
        """The displayed text by factor and level."""
        return level_names.format_levels(self.factors, self.toml or "")

    def level_text(self, factor: str, level: object) -> str:
        """Return a level's name in the study, or how it differs from the others."""
        own = level_names.format_level(level)
        return self.level_texts.get(factor, {}).get(own, own)

    @property
    def has_stop_rule(self) -> bool:
        """Whether the study was repeated until its intervals were narrow enough."""
        return has_stop_table(self.toml or "")


def list_within_factors(meta: Meta) -> list[str]:
    """Return the factors whose levels have own baselines: [baseline] within, and nodes."""
    named = meta.baseline or list(meta.factors) == [level_names.NODE]
    return [name for name in meta.factors if name not in meta.baseline] if named else []


@functools.lru_cache(maxsize=4)  # needed for each row of the report
def has_stop_table(toml: str) -> bool:
    """Return whether a study file has [study] stop."""
    return "stop" in read_study_table(toml)


def read_study_table(toml: str) -> dict[str, Any]:
    """Return the table [study]; empty without one."""
    try:
        study = tomllib.loads(toml).get("study", {})
    except tomllib.TOMLDecodeError:
        return {}
    return study if isinstance(study, dict) else {}


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure's name, its unit, and which direction is better (None: neither)."""

    name: str
    unit: str | None
    better: str | None
    is_primary: bool


@dataclass(frozen=True, slots=True)
class Record:
    """The record of a job on a node: properties of the node, and how well it was sampled."""

    run_id: str
    node: str
    complete: bool
    incomplete_reason: str | None
    node_type: str | None
    vm: str | None
    container: str | None
    kernel: str | None
    cpu_model: str | None
    exclusive: bool | None  # None: not known; a job without a scheduler counts as exclusive
    cpus: str | None
    memory_bytes: float | None
    has_energy: bool
    no_energy_reason: str | None
    samples_lost: int | None
    missed_deadlines: int | None
    samples: int | None
    energy_covers: str | None  # "package, dram": the parts that energy_j covers
    incomplete_of: str | None = None  # "job", or "processes": everything else is complete


@dataclass(frozen=True, slots=True)
class Gap:
    """A missing item; run_id is None if it concerns the whole study."""

    run_id: str | None
    node: str | None
    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two sources that differ more than allowed; node is None for sums over all nodes."""

    run_id: str
    node: str | None
    quantity: str
    unit: str
    source_a: str
    value_a: float
    source_b: str
    value_b: float


@dataclass(frozen=True, slots=True)
class Checks:
    """The results of comparing sources, for the counted attempts."""

    runs: int = 0  # runs of which two sources could be compared
    disagreements: tuple[Disagreement, ...] = ()  # the largest difference first


@dataclass(frozen=True)
class StudyData:
    """All data of a summary; `values[variant, label, metric]` is {run_id: value}."""

    folder: Path
    meta: Meta
    runs: list[Run]
    metrics: dict[str, list[Metric]]
    values: dict[tuple[str, str, str], dict[str, float | None]]
    records: list[Record]
    gaps: list[Gap]
    network: list[NodeNetwork] = field(default_factory=list)
    repeated: dict[str, int] = field(default_factory=dict)  # figures per run, by variant
    checks: Checks = field(default_factory=Checks)
    meters: tuple[MeterDisagreement, ...] = ()
    stand_ins: dict[str, int] = field(default_factory=dict)  # runs, by program
    other_units: list[OtherUnit] = field(default_factory=list)
    tags: list[TagValue] = field(default_factory=list)
    programs: list[Program] = field(default_factory=list)
    program_tags: dict[str, dict[str, set[str]]] = field(default_factory=dict)  # by run and key
    iterations: Iterations = field(default_factory=dict)
    parameters: dict[str, dict[str, Any]] = field(default_factory=dict)  # by variant
    usage_sources: UsageSources = field(default_factory=dict)  # by variant and condition

    def __repr__(self) -> str:
        return f"<data of {self.meta.study}: {counted(len(self.runs), 'run')}>"


def read_study(
    folder: Path, include_invalid: bool = False, idle: IdlePower | None = None
) -> StudyData:
    """Read all data except the samples.

    With `include_invalid` invalid runs count, too. With `idle` the shares of shared nodes' joules
    are computed from the samples.
    """
    with open_database(folder) as connection:
        runs = read_runs(connection, include_invalid)
        metrics, values, other_units = read_values(connection)
        joules = {GPU_ENERGY: "J"}
        add_metrics(metrics, values, joules, read_gpu_energy(connection))
        add_metrics(metrics, values, dict.fromkeys(PRESSURE, "%"), read_pressure(connection))
        add_metrics(metrics, values, SPAN_UNITS, read_span_metrics(connection))
        if idle is not None:
            shares = read_energy_metrics(connection, idle)
            add_metrics(metrics, values, dict.fromkeys(ENERGY_SHARES, "J"), shares)
        return StudyData(
            folder=folder,
            meta=read_meta(connection),
            runs=runs,
            metrics=metrics,
            values=values,
            records=read_records(connection),
            gaps=[*read_gaps(connection), *find_lost_samples(connection, folder)],
            network=read_network(connection),
            repeated=read_repeated(connection),
            checks=read_checks(connection),
            meters=read_meters(connection),
            stand_ins=read_stand_ins(connection),
            other_units=other_units,
            tags=tags_and_programs.read_tags(connection),
            programs=tags_and_programs.read_programs(connection),
            program_tags=tags_and_programs.read_program_tags(connection),
            iterations=read_iterations(connection),
            parameters=tags_and_programs.read_parameters(connection),
            usage_sources=read_usage_sources(connection),
        )


def read_meta(connection: duckdb.DuckDBPyConnection) -> Meta:
    row = connection.execute(
        "SELECT study, seed, toml, toml_sha256, steelyard, collected_unix_s, baseline, factors, "
        "scaling, session FROM meta"
    ).fetchone()
    assert row is not None  # check_version has seen it
    *fields, session = row
    if session is not None:
        fields[0] = f"{fields[0]}@{session}"
    baseline, factors, scaling = (json.loads(text or "{}") for text in fields[6:])
    fields[6:] = baseline, factors, read_scaling(scaling)
    head = read_study_table(fields[2] or "")
    fields += (parse_percent(head.get(key)) for key in ("equivalent", "tolerate"))
    return Meta(*fields)


def read_runs(connection: duckdb.DuckDBPyConnection, include_invalid: bool = False) -> list[Run]:
    """Return the runs in the order of their starts; runs that never started are last, as
    planned.
    """
    rows = connection.execute(
        """
        SELECT r.run_id, r.block, r.position, r.benchmark, r.variant, r.condition,
            r.condition_label, r.is_baseline, r.repeat, r.attempts, r.attempt, r.state,
            coalesce(r.reason, a.reason), r.valid, r.invalid_reason,
            CASE WHEN contains(a.job_id, '[') THEN a.job_id  -- names the task itself
                ELSE coalesce(a.array_job_id || '_' || a.array_task_id, a.job_id) END,
            a.start_unix_s, a.elapsed_s, a.nodes, coalesce(a.tries, 1)
        FROM runs AS r LEFT JOIN attempts AS a ON a.run_id = r.run_id AND a.attempt = r.attempt
        ORDER BY a.start_unix_s NULLS LAST, r.block, r.position, r.run_id
        """
    ).fetchall()
    # One object per condition: there are a hundred times as many runs.
    conditions = {text: json.loads(text) for text in {row[5] for row in rows}}
    return [build_run([*row, include_invalid], conditions[row[5]]) for row in rows]


def build_run(row: list[Any], condition: Condition) -> Run:
    row[5] = condition
    row[18] = tuple(row[18] or ())
    return Run(*row)


def read_values(
    connection: duckdb.DuckDBPyConnection, only_main: bool = False
) -> tuple[
    dict[str, list[Metric]], dict[tuple[str, str, str], dict[str, float | None]], list[OtherUnit]
]:
    """Return the metrics of each variant (primary ones first), and one value per run.

    nan counts as no value, and so does a number larger or smaller than any measurement, because a
    variance needs its square. With `only_main` only the main figures are read.
    """
    # Lists instead of rows take a third of the time.
    rows = connection.execute(
        f"""
        SELECT r.variant, r.condition_label, m.metric, list(m.run_id),
            list(CASE WHEN isfinite(m.value) AND (m.value = 0
                OR abs(m.value) BETWEEN {SMALLEST} AND {LARGEST}) THEN m.value END),
            m.unit, m.better, m.is_primary
        FROM measurements AS m JOIN runs AS r USING (run_id)
        {"WHERE m.is_primary" if only_main else ""}
        GROUP BY ALL ORDER BY ALL
        """
    ).fetchall()
    values: dict[tuple[str, str, str], dict[str, float | None]] = {}
    found: dict[str, dict[str, Metric]] = {}
    settled, others = unify_units(rows)
    for variant, label, metric, run_ids, numbers, unit, better, is_primary in settled:
        values.setdefault((variant, label, metric), {}).update(zip(run_ids, numbers, strict=True))
        if metric not in found.setdefault(variant, {}):
            found[variant][metric] = Metric(metric, unit, better, is_primary)
    ordered = {v: sort_metrics(v, m.values()) for v, m in found.items()}
    return ordered, values, others


def add_metrics(
    metrics: dict[str, list[Metric]], values: Values, units: dict[str, str], found: Values
) -> None:
    """Add the values derived from records and samples as metrics."""
    values |= found
    for variant in {variant for variant, _, _ in found}:
        names = {name for other, _, name in found if other == variant}
        own = [Metric(name, unit, "lower", False) for name, unit in units.items() if name in names]
        metrics[variant] = sort_metrics(variant, [*metrics.get(variant, []), *own])


# Metrics of every run, in the order of their importance to users; a benchmark's own come before.
COMMON = ("elapsed_s", *ENERGY_SHARES, GPU_ENERGY, *SPAN_UNITS, *METRICS, *PRESSURE)


def sort_metrics(variant: str, metrics: Iterable[Metric]) -> list[Metric]:
    """Sort main figures first; among them, figures of a program come before its elapsed time."""

    def order(metric: Metric) -> tuple[bool, bool, int, str]:
        common = COMMON.index(metric.name) if metric.name in COMMON else -1
        is_elapsed = is_elapsed_figure(variant, metric.name)
        return not metric.is_primary, is_elapsed, common, metric.name

    return sorted(metrics, key=order)


# Read together, because each expression would parse the record again.
OF_THE_RECORD = (
    "$.probe.cpu.cpus_online",
    "$.probe.memory.memory_bytes",
    '$.missing."energy.energy_j"',
    "$.job.scheduler",
    "$.incomplete_of",
)


def read_records(connection: duckdb.DuckDBPyConnection) -> list[Record]:
    """Return the records of the counted attempts."""
    rows = connection.execute(
        """
        SELECT n.run_id, n.node, n.complete, n.incomplete_reason, n.node_type, n.vm, n.container,
            n.kernel, n.cpu_model,
            CASE WHEN n.exclusive IS NULL AND json[4] = 'none' THEN TRUE ELSE n.exclusive END,
            json[1], TRY_CAST(json[2] AS DOUBLE),
            n.energy_j IS NOT NULL, json[3], n.samples_lost, n.missed_deadlines, n.samples,
            nullif(array_to_string(n.record->>'$.energy.covers[*]', ', '), ''), json[5]
        FROM records AS n JOIN runs AS r ON r.run_id = n.run_id AND r.attempt = n.attempt,
            LATERAL (SELECT json_extract_string(n.record, ?)) AS j (json)
        ORDER BY n.node, n.run_id
        """,
        [list(OF_THE_RECORD)],
    ).fetchall()
    return [Record(*row) for row in rows]


def read_gaps(connection: duckdb.DuckDBPyConnection) -> list[Gap]:
    rows = connection.execute(
        "SELECT run_id, node, kind, reason FROM gaps ORDER BY kind, run_id NULLS FIRST, node"
    ).fetchall()
    return [Gap(*row) for row in rows]


def find_lost_samples(connection: duckdb.DuckDBPyConnection, folder: Path) -> Iterator[Gap]:
    for part in sample_store.find_lost_parts(connection, folder):
        problem = "is cut short" if part.path.exists() else "is not there"
        samples = f"{counted(part.samples, 'sample')} {inflect(part.samples, 'is', 'are')}"
        reason = f"{sample_store.FOLDER / part.name} {problem}: its {samples} in no figure; "
        yield Gap(None, None, "samples", reason + "`steelyard collect` makes it anew")


def read_repeated(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Return the largest number of primary figures (iterations x clients) per run, by variant."""
    rows = connection.execute(
        """
        SELECT variant, max(figures) FROM (
            SELECT r.variant, count(*) AS figures
            FROM results AS s JOIN runs AS r ON r.run_id = s.run_id AND r.attempt = s.attempt
            WHERE s.is_primary GROUP BY r.variant, s.run_id, s.metric)
        GROUP BY variant
        """
    ).fetchall()
    return dict(rows)


# Indices in a row of read_values(): variant, condition, metric, run_ids, their values, unit, ...
VARIANT, METRIC, RUNS, VALUES, UNIT = 0, 2, 3, 4, 5


@dataclass(frozen=True, slots=True)
class OtherUnit:
    """Runs whose figure has another unit than in most runs; no mean includes them."""

    variant: str
    metric: str
    unit: str | None
    usual: str | None
    run_ids: tuple[str, ...]


def unify_units(
    rows: Sequence[tuple[Any, ...]],
) -> tuple[Sequence[tuple[Any, ...]], list[OtherUnit]]:
    """Return the rows in the unit of most runs per variant and metric.

    Values in other units become None. In a tie the first unit wins.
    """
    runs: dict[tuple[str, str], dict[str | None, list[str]]] = {}
    for row in rows:
        by_unit = runs.setdefault((row[VARIANT], row[METRIC]), {})
        by_unit.setdefault(row[UNIT], []).extend(row[RUNS])
    usual = {
        key: max(by_unit, key=lambda unit: len(by_unit[unit]))
        for key, by_unit in runs.items()
        if len(by_unit) > 1
    }
    if not usual:
        return rows, []
    others = [
        OtherUnit(*key, unit, usual[key], tuple(sorted(run_ids)))
        for key in usual
        for unit, run_ids in runs[key].items()
        if unit != usual[key]
    ]
    return [convert_to_usual_unit(row, usual) for row in rows], others


def convert_to_usual_unit(
    row: tuple[Any, ...], usual: dict[tuple[str, str], str | None]
) -> tuple[Any, ...]:
    """Return the row unchanged, or in the usual unit without its values."""
    unit = usual.get((row[VARIANT], row[METRIC]), row[UNIT])
    if row[UNIT] == unit:
        return row
    return (*row[:VALUES], [None] * len(row[VALUES]), unit, *row[UNIT + 1 :])


# {(run, metric): its iterations in order, each the mean over the clients}
Iterations = dict[tuple[str, str], list[float]]


def read_iterations(connection: duckdb.DuckDBPyConnection) -> Iterations:
    """Return the iterations of main figures of runs with at least 3 iterations in time."""
    names = connection.execute("SELECT DISTINCT benchmark FROM runs").fetchall()
    rows = connection.execute(
        """
        WITH means AS (
            SELECT s.run_id, s.metric, s.iteration, avg(s.value) AS v
            FROM results AS s JOIN runs AS r ON r.run_id = s.run_id AND r.attempt = s.attempt
            WHERE s.is_primary AND isfinite(s.value) AND list_contains(?, r.benchmark)
            GROUP BY s.run_id, s.metric, s.iteration)
        SELECT run_id, metric, list(v ORDER BY iteration) FROM means
        GROUP BY run_id, metric HAVING count(*) >= ?
        """,
        [[name for (name,) in names if has_time_order(name)], MIN_ITERATIONS],
    ).fetchall()
    return {(run_id, metric): values for run_id, metric, values in rows}


def read_checks(connection: DuckDBPyConnection) -> Checks:
    """Read the table `checks`."""
    counted = "checks AS c JOIN runs AS r ON r.run_id = c.run_id AND r.attempt = c.attempt"
    runs = connection.execute(f"SELECT count(DISTINCT c.run_id) FROM {counted}").fetchall()
    rows = connection.execute(
        "SELECT c.run_id, c.node, c.quantity, c.unit, c.source_a, c.value_a, c.source_b, c.value_b "
        f"FROM {counted} WHERE NOT c.agrees "
        "ORDER BY abs(c.value_a - c.value_b) / greatest(c.bound, 1e-9) DESC, 1, 2, 3, 5, 7"
    ).fetchall()
    return Checks(int(runs[0][0]), tuple(Disagreement(*row) for row in rows))


def read_stand_ins(connection: DuckDBPyConnection) -> dict[str, int]:
    """Return the programs that replaced the accounting, and their number of runs."""
    rows = connection.execute(
        "SELECT extra->>'source' AS source, count(DISTINCT run_id) FROM accounting "
        "SEMI JOIN runs USING (run_id, attempt) "
        "WHERE extra->>'source' <> ? GROUP BY source ORDER BY source",
        [SERVER_LOG],
    ).fetchall()
    return {str(source): int(runs) for source, runs in rows}
