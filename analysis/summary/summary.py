"""Computes means, spread and overheads of every variant, condition and metric of a study.

A run is one sample: the view `measurements` averages repeated measurements inside it (iterations,
clients).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from steelyard.analysis.base.benchmark_traits import elapsed_figures
from steelyard.analysis.stats.basics import CONFIDENCE, find_outliers, median
from steelyard.analysis.stats.basics import spread as spread_of
from steelyard.analysis.stats.effect_size import Effect
from steelyard.analysis.stats.hypothesis_tests import holm
from steelyard.analysis.stats.number_format import format_unit
from steelyard.analysis.stats.overhead import (
    EXACT,
    Overhead,
    can_be_counted,
    compute_exact_overhead,
    is_counted,
)
from steelyard.analysis.stats.overhead_verdict import Direction, Evidence, Verdict, make_verdict
from steelyard.analysis.stats.planning import STOPPING_CONFIDENCE
from steelyard.analysis.store.energy_shares import IdlePower
from steelyard.analysis.summary.gpu_and_pressure import GPU_ENERGY
from steelyard.analysis.summary.interleaving import check_interleaving
from steelyard.analysis.summary.rows import Counts, Group, Row, format_html_table
from steelyard.analysis.summary.sampling_units import (
    compare_means,
    compute_effect,
    compute_equivalence_p,
    compute_mean,
    compute_means_p,
    compute_non_inferiority_p,
    group_samples,
)
from steelyard.analysis.summary.shared_node_energy import METRICS as ENERGY_SHARES
from steelyard.analysis.summary.shared_node_energy import Bounds, make_bounds_verdict
from steelyard.analysis.summary.study_data import Metric, StudyData, list_within_factors, read_study
from steelyard.analysis.summary.study_run import Condition, Run
from steelyard.analysis.summary.usage_scope import count_programs, describe_scope_difference

NAME_ITS_UNIT = 'a count is compared exactly once its unit says so: unit = "count"'
UNTESTED = "coarse: all pairs, or jobs, of a side are alike, and without a spread there is no test"

# States of a run that may still give a value.
WAITING = frozenset(("planned", "pending", "running", "requeued"))
CANCELLED = "cancelled"  # by a user, or by the scheduler for other jobs: the run did not fail


@dataclass(frozen=True, eq=False)  # hashed by identity: node_comparisons caches by it
class Summary:
    """A study's statistics; variants, conditions and metrics are in the order of the report."""

    data: StudyData
    groups: list[Group]
    rows: list[Row]
    by_key: dict[tuple[str, str, str], Row]

    def __repr__(self) -> str:
        return (
            f"<summary of {self.data.meta.study}: benchmarks: {len(self.variants)}, "
            f"conditions: {len(self.labels)}, rows: {len(self.rows)}>"
        )

    def _repr_html_(self) -> str:
        """Return what a notebook displays."""
        return format_html_table(self.rows)

    @property
    def variants(self) -> list[str]:
        return list(dict.fromkeys(group.variant for group in self.groups))

    @property
    def labels(self) -> list[str]:
        """The conditions, in the order of the factors' levels."""
        return list(dict.fromkeys(group.label for group in self.groups))

    def row(self, variant: str, label: str, metric: str) -> Row | None:
        return self.by_key.get((variant, label, metric))

    def compared_rows(self, primary: bool | None = None) -> list[Row]:
        """Return rows with a verdict; `primary`: main figures, or the others."""
        judged = [row for row in self.rows if row.verdict is not None]
        if primary is None:
            return judged
        return [row for row in judged if row.metric.is_primary == primary]


def summarize(
    folder: Path,
    include_invalid: bool = False,
    idle: IdlePower | None = None,
    equivalent: float | None = None,
    tolerate: float | None = None,
) -> Summary:
    """Read a study's database and compute everything.

    Invalid runs, and shares of shared nodes' joules (`idle`), count only on request. `equivalent`
    and `tolerate` override the study file.
    """
    return build_summary(read_study(folder, include_invalid, idle), equivalent, tolerate)


def build_summary(
    data: StudyData, equivalent: float | None = None, tolerate: float | None = None
) -> Summary:
    """Compute the statistics of the data."""
    if equivalent is not None:
        data = replace(data, meta=replace(data.meta, equivalent=equivalent))
    if tolerate is not None:
        data = replace(data, meta=replace(data.meta, tolerate=tolerate))
    groups = build_groups(data)
    plain = {
        (group.variant, group.label, metric.name): build_row(data, group, metric)
        for group in groups
        for metric in data.metrics.get(group.variant, [])
    }
    rows = compare_rows(plain)
    return Summary(data, groups, list(rows.values()), rows)


def build_groups(data: StudyData) -> list[Group]:
    """Return variants in the order of the plan, and their conditions in the order of the levels."""
    members: dict[tuple[str, str], list[Run]] = {}
    for run in data.runs:
        members.setdefault((run.variant, run.label), []).append(run)
    first = {variant: order for order, variant in enumerate(variant_order(data.runs))}
    labels = {
        (variant, condition_key(runs[0].condition)): label
        for (variant, label), runs in members.items()
    }
    groups = [
        Group(
            variant=variant,
            label=label,
            condition=runs[0].condition,
            is_baseline=runs[0].is_baseline,
            runs=tuple(runs),
            counts=count_runs(runs),
            baseline_label=labels.get((variant, baseline_key(data, runs[0]) or "")),
            levels={k: data.meta.level_text(k, v) for k, v in runs[0].condition.items()},
        )
        for (variant, label), runs in members.items()
    ]
    return sorted(groups, key=lambda g: (first[g.variant], level_order(data, g.condition)))


def variant_order(runs: Sequence[Run]) -> list[str]:
    """Return the variants grouped by benchmark, sorted by name."""
    return [v for _, v in sorted({(run.benchmark, run.variant) for run in runs})]


def level_order(data: StudyData, condition: Condition) -> list[tuple[int, str]]:
    """Return a condition's position among the factors' levels, so that compared ones are adjacent.

    The baseline's factors change fastest.
    """
    names = sorted(data.meta.factors, key=lambda name: name in data.meta.baseline)
    places = []
    for name in names:
        levels, level = data.meta.factors[name], condition.get(name)
        places.append((levels.index(level) if level in levels else -1, ""))
    return [*places, (0, condition_key(condition))]


def condition_key(condition: Condition) -> str:
    return json.dumps(condition, sort_keys=True)


def baseline_key(data: StudyData, run: Run) -> str | None:
    """Return the key of the condition with the baseline's levels and this one's other levels.

    Without factors the only condition is compared with itself.
    """
    if data.meta.factors and not (data.meta.baseline or list_within_factors(data.meta)):
        return None
    # A factor that does not apply to this variant is not in its conditions (docs/study.md).
    own = {k: v for k, v in data.meta.baseline.items() if k in run.condition}
    return condition_key(run.condition | own)


def count_runs(runs: Sequence[Run]) -> Counts:
    completed = sum(run.state == "completed" for run in runs)
    waiting = sum(run.state in WAITING for run in runs)
    invalid = sum(run.state == "completed" and run.valid is False for run in runs)
    cancelled = sum(run.state == CANCELLED for run in runs)
    failed = len(runs) - completed - waiting - cancelled
    return Counts(len(runs), completed, failed, invalid, waiting, cancelled)


def build_row(data: StudyData, group: Group, metric: Metric) -> Row:
    """Compute the statistics of one metric, without the comparison."""
    found = data.values.get((group.variant, group.label, metric.name), {})
    pairs = [(run.run_id, found.get(run.run_id)) for run in group.runs if run.counts]
    known = [(run_id, value) for run_id, value in pairs if value is not None]
    ids, values = tuple(run_id for run_id, _ in known), tuple(value for _, value in known)
    missing = len(pairs) - len(known)
    confidence = STOPPING_CONFIDENCE if data.meta.has_stop_rule else CONFIDENCE
    row = Row(group, metric, ids, values, missing, confidence, data.meta.equivalent)
    if not values:
        return row
    what, samples = group_samples(row)
    return replace(
        row,
        interval=compute_mean(row),
        jobs=len(samples) if what == "job" else None,
        blocks=len(samples) if what == "block" else None,
        median=median(values),
        spread=spread_of(values),
        minimum=min(values),
        maximum=max(values),
        outliers=find_outliers(values),
    )


def compare_rows(rows: dict[tuple[str, str, str], Row]) -> dict[tuple[str, str, str], Row]:
    """Return the rows with their overheads, each compared with the baseline of its own variant."""
    compared = {
        key: rows.get((row.group.variant, row.group.baseline_label, row.metric.name))
        if row.group.baseline_label
        else None
        for key, row in rows.items()
        if row.group.baseline_label is None or row.group.baseline_label != row.group.label
    }
    judged = judge_all([(rows[key], base) for key, base in compared.items()])
    return rows | {
        key: replace(
            rows[key],
            overhead=j.overhead,
            verdict=j.verdict,
            p=j.p,
            p_equivalent=j.p_equivalent,
            p_non_inferior=j.p_non_inferior,
            effect=j.effect,
        )
        for key, j in zip(compared, judged, strict=True)
    }


@dataclass(frozen=True, slots=True)
class Judged:
    """The comparison of a row with another of the same metric; None with too few values."""

    overhead: Overhead | None
    verdict: Verdict
    p: float | None = None  # of Welch's or the paired test, corrected by Holm for its family
    effect: Effect | None = None  # Hedges' g
    p_equivalent: float | None = None  # of being beyond the margin, corrected likewise
    p_non_inferior: float | None = None  # likewise, of being beyond it on the worse side


def judge_all(pairs: Sequence[tuple[Row, Row | None]]) -> list[Judged]:
    """Compare each row with its base, corrected for the number of comparisons.

    There are two families: the benchmarks' main figures, and all other metrics.
    """
    bounds = judge_bounds(pairs)
    plain = [bounds.get(index) or judge(*pair) for index, pair in enumerate(pairs)]
    tests = [run_tests(row, base, found) for (row, base), found in zip(pairs, plain, strict=True)]
    by_index: dict[int, Evidence] = {}
    for is_main in (True, False):
        family = [n for n, (row, _) in enumerate(pairs) if row.metric.is_primary == is_main]
        by_index |= correct_family({index: tests[index] for index in family})
    return [
        add_remark(row, base, decide_verdict(row, base, found, by_index[index]))
        for index, ((row, base), found) in enumerate(zip(pairs, plain, strict=True))
    ]


def judge_bounds(pairs: Sequence[tuple[Row, Row | None]]) -> dict[int, Judged]:
    """Return the verdicts on shares of joules by place; both bounds of a condition share one."""
    of = {(row.group.variant, row.group.label, row.metric.name): (row, base) for row, base in pairs}
    found = {}
    for index, (row, _) in enumerate(pairs):
        if row.metric.name in ENERGY_SHARES:
            key = row.group.variant, row.group.label
            both = [of.get((*key, name), (None, None)) for name in ENERGY_SHARES]
            ours, base = (
                Bounds(*(r and r.interval for r in rows)) for rows in zip(*both, strict=True)
            )
            found[index] = Judged(None, make_bounds_verdict(ours, base))
    return found


def add_remark(row: Row, base: Row | None, found: Judged) -> Judged:
    """Add a remark if the two sides count different things or did not take turns."""
    if base is None or found.overhead is None:
        return found
    conditions = row.group.condition, base.group.condition
    remark = counted_apart = describe_scope_difference(row.metric.name, *conditions)
    if found.overhead.low is not None and found.overhead.method != EXACT:
        remark = "; ".join(filter(None, (remark, check_interleaving(row, base).describe)))
    if not remark:
        return found
    direction = found.verdict.direction
    same = len(set(map(count_programs, conditions))) == 1
    if counted_apart and not same and direction in (Direction.WORSE, Direction.BETTER):
        direction = Direction.DIFFERENT  # more programs use more, which is neither worse nor better
    text = f"{found.verdict.text} ({remark})"
    return replace(found, verdict=replace(found.verdict, text=text, direction=direction))


def run_tests(row: Row, base: Row | None, found: Judged) -> Evidence:
    """Return the uncorrected p values; None if no overhead can be judged."""
    overhead = found.overhead
    if base is None or overhead is None or overhead.low is None or overhead.method == EXACT:
        return Evidence(margin=row.margin)
    plain = Evidence(compute_means_p(row, base), margin=row.margin)
    if row.margin is None:
        return plain
    return replace(
        plain,
        p_equivalent=compute_equivalence_p(row, base, row.margin),
        p_non_inferior=compute_non_inferiority_p(row, base, row.margin),
    )


def decide_verdict(row: Row, base: Row | None, found: Judged, evidence: Evidence) -> Judged:
    """Return the verdict with tests, effect size and words."""
    if base is None or found.overhead is None or found.overhead.low is None:
        return found
    metric, result = row.metric, found.overhead
    if evidence.p is None and result.method != EXACT:  # an interval alone is no verdict
        result = replace(result, value=None, low=None, high=None, method="none", reason=UNTESTED)
    verdict = make_verdict(result, metric.unit, metric.better, metric.name, evidence)
    effect = None if evidence.p is None else compute_effect(row, base)
    return Judged(
        result, verdict, evidence.p, effect, evidence.p_equivalent, evidence.p_non_inferior
    )


def judge(row: Row, base: Row | None) -> Judged:
    """Return the overhead of a row compared with any other of the same metric, and its verdict."""
    reason = None
    if base is None:
        reason = "no runs of the baseline"
    elif not row.values:
        reason = "no values"
    elif not base.values:
        reason = "no values of the baseline"
    elif row.metric.unit != base.metric.unit:
        units = (format_unit(one.metric.unit) for one in (row, base))
        reason = "its unit is {}, the baseline's {}".format(*units)
    if reason or base is None:
        return Judged(None, Verdict(Direction.UNKNOWN, f"cannot be judged: {reason}"))
    result = compare_row(row, base)
    metric = row.metric
    return Judged(result, make_verdict(result, metric.unit, metric.better, metric.name))


def compare_row(row: Row, base: Row) -> Overhead:
    """Return the exact overhead of counts that do not vary, else that of the means."""
    values, metric = (*row.values, *base.values), row.metric
    exact = compute_exact_overhead(row.values, base.values)
    if exact is not None and is_counted(metric.name, metric.unit, values):
        return exact
    result = compare_means(row, base)
    if exact is not None and can_be_counted(metric.unit, values):
        return replace(result, reason=f"{result.reason} ({NAME_ITS_UNIT})")
    return result


# Metrics of every run, and energy shares on request; shown with a benchmark's own figures.
MAIN = ("elapsed_s", "energy_j", *ENERGY_SHARES, GPU_ENERGY, "cpu_s")


def is_main(row: Row) -> bool:
    """Return whether a metric is in the first tables."""
    return row.metric.is_primary or is_common(row.group.variant, row.metric.name)


def is_common(variant: str, metric: str) -> bool:
    """Return whether a metric of every run is in the first tables.

    elapsed_s is only if the benchmark has no figure of the same time.
    """
    return metric in MAIN and not (metric == "elapsed_s" and elapsed_figures(variant))


def correct_family(family: Mapping[int, Evidence]) -> dict[int, Evidence]:
    """Return the evidence by place, each p corrected by Holm; those of the margin separately."""
    p = correct_by_holm({index: one.p for index, one in family.items()})
    equivalent = correct_by_holm({index: one.p_equivalent for index, one in family.items()})
    no_worse = correct_by_holm({index: one.p_non_inferior for index, one in family.items()})
    return {
        index: replace(
            one,
            p=p.get(index),
            family=len(p),
            p_equivalent=equivalent.get(index),
            p_non_inferior=no_worse.get(index),
        )
        for index, one in family.items()
    }


def correct_by_holm(tests: Mapping[int, float | None]) -> dict[int, float]:
    """Return the known p values, corrected for all of them."""
    known = {index: p for index, p in tests.items() if p is not None}
    return dict(zip(known, holm(list(known.values())), strict=True))
