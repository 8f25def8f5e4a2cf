"""What a reader must know before trusting the numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from steelyard.analysis.findings.finding import (
    FEW_RUNS,
    NOISY,
    Check,
    Code,
    Finding,
    Severity,
    counted,
    place,
)
from steelyard.analysis.findings.nodes import NODE_CHECKS
from steelyard.analysis.findings.shape import SHAPE_CHECKS
from steelyard.analysis.findings.sy16_drift import find_drift
from steelyard.analysis.findings.sy24_sources_disagree import find_disagreements
from steelyard.analysis.findings.sy27_no_split import find_broken_splits
from steelyard.analysis.findings.sy28_inner_warm_up import find_inner_warm_up
from steelyard.analysis.stats.overhead import Direction
from steelyard.analysis.summary.load import Run
from steelyard.analysis.summary.summary import WAITING, Group, Row, Summary

MANY_COMPARISONS = 20  # of so many one is expected to differ by chance at 95 %

# Gaps with a finding of their own.
RECORD_GAPS = frozenset(("record", "incomplete_record"))


def find(summary: Summary) -> list[Finding]:
    """All findings, the gravest first, then by code."""
    return by_gravity([finding for check in CHECKS for finding in check(summary)])


def by_gravity(findings: Sequence[Finding]) -> list[Finding]:
    """The gravest first, then by code."""
    order = list(Severity)
    return sorted(findings, key=lambda f: (order.index(f.kind.severity), f.kind.code))


def primary_rows(summary: Summary) -> list[Row]:
    return [row for row in summary.rows if row.metric.is_primary]


def row_place(row: Row) -> str:
    return f"{place(row.group)} · {row.metric.name}"


def total_runs(summary: Summary) -> int:
    return len(summary.data.runs)


def find_no_runs(summary: Summary) -> Iterator[Finding]:
    """SY29."""
    if not summary.data.runs:
        yield Finding(Code.NO_RUNS, "There is nothing to report.", ())


def find_failed(summary: Summary) -> Iterator[Finding]:
    """SY01."""
    failed = [run for run in summary.data.runs if run.state not in (*WAITING, "completed")]
    if failed:
        states = Counter(run.state for run in failed)
        words = ", ".join(f"{number} {state}" for state, number in states.most_common())
        yield Finding(
            Code.FAILED_RUNS,
            f"{len(failed)} of {counted(total_runs(summary), 'run')} gave no result: {words}.",
            shares(summary, lambda group: group.counts.failed),
        )


def find_unfinished(summary: Summary) -> Iterator[Finding]:
    """SY02."""
    waiting = sum(group.counts.waiting for group in summary.groups)
    if waiting:
        yield Finding(
            Code.UNFINISHED_RUNS,
            f"{waiting} of {counted(total_runs(summary), 'run')} are waiting or running.",
            shares(summary, lambda group: group.counts.waiting),
        )


def find_invalid(summary: Summary) -> Iterator[Finding]:
    """SY03."""
    invalid = [run for run in summary.data.runs if run.valid is False]
    if invalid:
        reasons = Counter(run.invalid_reason or "no reason given" for run in invalid)
        words = "; ".join(f"{reason} ({number})" for reason, number in reasons.most_common(5))
        yield Finding(
            Code.INVALID_RUNS,
            f"{counted(len(invalid), 'run')} ended but did not meet the conditions: {words}. "
            + ("In the means, as asked for." if invalid[0].counts else "In no mean."),
            shares(summary, lambda group: group.counts.invalid),
        )


def shares(summary: Summary, number: Callable[[Group], int]) -> tuple[str, ...]:
    """`place: 1 of 5` for the groups with any."""
    return tuple(
        f"{place(group)}: {number(group)} of {group.counts.planned}"
        for group in summary.groups
        if number(group)
    )


def find_few(summary: Summary) -> Iterator[Finding]:
    """SY04."""
    few = [row for row in primary_rows(summary) if row.n < FEW_RUNS]
    if few:
        yield Finding(
            Code.FEW_RUNS,
            f"{counted(len(few), 'mean')} of a benchmark's main figure rest on fewer than "
            f"{FEW_RUNS} runs.".replace("1 mean of a benchmark's main figure rest", "1 mean rests"),
            tuple(f"{row_place(row)}: n = {row.n}" for row in few),
        )


def find_outliers(summary: Summary) -> Iterator[Finding]:
    """SY05."""
    hit = [row for row in primary_rows(summary) if row.outliers.indices]
    if hit:
        total = sum(len(row.outliers.indices) for row in hit)
        yield Finding(
            Code.OUTLIERS,
            f"{counted(total, 'value')} of {sum(row.n for row in primary_rows(summary))} "
            f"of the main figures: far from the others of their condition.",
            tuple(f"{row_place(row)}: {', '.join(outlier_runs(row))}" for row in hit),
        )


def outlier_runs(row: Row) -> list[str]:
    return [row.run_ids[index] for index in row.outliers.indices]


def find_noisy(summary: Summary) -> Iterator[Finding]:
    """SY06."""
    shares_of_mean = [(row, variation(row)) for row in primary_rows(summary)]
    noisy = [(row, share) for row, share in shares_of_mean if share is not None and share > NOISY]
    if noisy:
        yield Finding(
            Code.NOISY,
            f"In {len(noisy)} of {len(shares_of_mean)} means of a main figure.",
            tuple(f"{row_place(row)}: {share * 100:.0f} % of the mean" for row, share in noisy),
        )


def variation(row: Row) -> float | None:
    """Standard deviation as a share of the mean."""
    if row.spread is None or row.spread.sd is None or row.interval is None or not row.interval.mean:
        return None
    return row.spread.sd / abs(row.interval.mean)


def find_no_baseline(summary: Summary) -> Iterator[Finding]:
    """SY14."""
    without = [group for group in summary.groups if group.baseline_label is None]
    if without:
        yield Finding(
            Code.NO_BASELINE,
            f"{len(without)} of {len(summary.groups)} groups of runs have none.",
            tuple(place(group) for group in without),
        )


def find_many(summary: Summary) -> Iterator[Finding]:
    """SY15."""
    judged = [row for row in summary.compared() if row.verdict and has_interval(row)]
    if len(judged) >= MANY_COMPARISONS:
        differ = sum(
            row.verdict.direction is not Direction.NOT_SHOWN for row in judged if row.verdict
        )
        yield Finding(
            Code.MANY_COMPARISONS,
            f"{len(judged)} overheads have an interval; about {len(judged) * 0.05:.0f} of them would "
            f"exclude 0 by chance if nothing differed. {differ} differ after correction.",
        )


def has_interval(row: Row) -> bool:
    return row.overhead is not None and row.overhead.low is not None


def find_gaps(summary: Summary) -> Iterator[Finding]:
    """SY17."""
    gaps = [gap for gap in summary.data.gaps if gap.what not in RECORD_GAPS]
    if gaps:
        kinds = Counter(gap.what for gap in gaps)
        places = tuple(f"{what}: {number}" for what, number in kinds.most_common())
        yield Finding(Code.GAPS, f"{counted(len(gaps), 'thing')} that should be there.", places)


def find_repeated(summary: Summary) -> Iterator[Finding]:
    """SY18."""
    again = [run for run in summary.data.runs if run.attempts > 1 or run.tries > 1]
    if again:
        yield Finding(
            Code.REPEATED_ATTEMPTS,
            f"{len(again)} of {counted(total_runs(summary), 'run')}.",
            tuple(f"{run.run_id}: {how_often(run)}" for run in again),
        )


def how_often(run: Run) -> str:
    """`2 attempts, 3 tries in the last`."""
    words = [counted(run.attempts, "attempt")] if run.attempts > 1 else []
    return ", ".join([*words, f"{run.tries} tries in the last"] if run.tries > 1 else words)


def find_missing_values(summary: Summary) -> Iterator[Finding]:
    """SY19."""
    hit = [row for row in primary_rows(summary) if row.missing]
    if hit:
        yield Finding(
            Code.MISSING_VALUES,
            f"{counted(sum(row.missing for row in hit), 'run')} completed without a value.",
            tuple(f"{row_place(row)}: {row.missing}" for row in hit),
        )


def find_other_units(summary: Summary) -> Iterator[Finding]:
    """SY26."""
    others = summary.data.other_units
    if others:
        runs = {run for one in others for run in one.run_ids}
        yield Finding(
            Code.OTHER_UNIT,
            f"In {counted(len(runs), 'run')} of {total_runs(summary)}; in no mean.",
            tuple(
                f"{one.variant} · {one.metric}: {one.unit or 'none'} in place of "
                f"{one.usual or 'none'} in {', '.join(one.run_ids)}"
                for one in others
            ),
        )


CHECKS: tuple[Check, ...] = (
    find_no_runs,
    find_failed,
    find_unfinished,
    find_invalid,
    find_few,
    find_outliers,
    find_noisy,
    *NODE_CHECKS,
    find_no_baseline,
    find_many,
    find_drift,
    find_gaps,
    find_repeated,
    find_missing_values,
    find_other_units,
    find_disagreements,
    *SHAPE_CHECKS,
    find_broken_splits,
    find_inner_warm_up,
)
