"""Findings on comparisons that show less than they seem to."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.base.benchmark_traits import finds_own_figures
from steelyard.analysis.findings.finding import (
    Facts,
    Finding,
    Kind,
    Rule,
    Severity,
    count_runs,
    format_location,
    format_row_location,
    select_main_rows,
    select_measured_rows,
)
from steelyard.analysis.stats.overhead import EXACT
from steelyard.analysis.stats.overhead_verdict import SHOWN
from steelyard.analysis.stats.planning import MIN_PILOT, repeats_assured
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.sampling_units import group_samples, sample_means
from steelyard.analysis.summary.summary import Summary
from steelyard.jobscripts.plurals import counted

FEW_RUNS = 5  # half a 95 % interval is then 1.24 standard deviations

SY04 = Kind(
    code="SY04",
    severity=Severity.WARNING,
    title=f"fewer than {FEW_RUNS} runs",
    why="So few runs hardly determine a standard deviation, and outliers are not looked for.",
    advice=(
        "Raise `repeat` in the study and submit again: half of a 95 % interval is 1.24 "
        "standard deviations with 5 runs, 0.72 with 10, 0.34 with 35."
    ),
    example="x · clients=1 · seconds: n = 4",
    source="Student (1908), Biometrika 6(1)",
)


def check_few_runs(summary: Summary) -> Iterator[Finding]:
    few = [row for row in select_measured_rows(summary) if row.n < FEW_RUNS]
    if few:
        yield Finding(
            SY04,
            f"{counted(len(few), 'mean')} of a benchmark's main figure rest on fewer than "
            f"{FEW_RUNS} runs.".replace("1 mean of a benchmark's main figure rest", "1 mean rests"),
            tuple(f"{format_row_location(row)}: n = {row.n}" for row in few),
        )


SY14 = Kind(
    code="SY14",
    severity=Severity.WARNING,
    title="conditions without a baseline to compare with",
    why="An overhead is a share of the baseline.",
    advice=(
        "Name a baseline in the study's [baseline] and let its runs finish: `steelyard "
        "status STUDY` shows how far they are."
    ),
    example="2 of 2 groups of runs have none.",
    source="docs/study.md",
)


def check_no_baseline(summary: Summary) -> Iterator[Finding]:
    without = [group for group in summary.groups if group.baseline_label is None]
    if without:
        yield Finding(
            SY14,
            f"{len(without)} of {counted(len(summary.groups), 'group')} of runs have none.",
            tuple(format_location(group) for group in without),
        )


MANY_COMPARISONS = 20  # among this many, one is expected to differ by chance at 95 %

SY15 = Kind(
    code="SY15",
    severity=Severity.NOTE,
    title="many comparisons at once",
    why="Of 20 comparisons between equals one differs by chance at 95 %.",
    advice=(
        "Verdicts are corrected for the number of comparisons (Holm). Intervals are not: "
        "each alone holds in 95 of 100 studies. Decide beforehand which metric counts; "
        "`steelyard compare STUDY A B` tests two conditions alone."
    ),
    example=(
        "20 overheads have an interval; about 1 of them would exclude 0 by chance if nothing "
        "differed. 0 differ after correction, 0 of them main figures."
    ),
    source="Holm (1979), Scandinavian Journal of Statistics 6(2)",
)


def check_many_comparisons(summary: Summary) -> Iterator[Finding]:
    judged = [row for row in summary.compared_rows() if row.verdict and has_interval(row)]
    if len(judged) >= MANY_COMPARISONS:
        differing = [row for row in judged if row.verdict and row.verdict.direction in SHOWN]
        main = sum(row.metric.is_primary for row in differing)
        yield Finding(
            SY15,
            f"{len(judged)} overheads have an interval; about {len(judged) * 0.05:.0f} of them would "
            f"exclude 0 by chance if nothing differed. {len(differing)} differ after correction, {main} of "
            "them main figures.",
        )


def has_interval(row: Row) -> bool:
    """Return whether the overhead has a random error; counts that do not vary have none."""
    found = row.overhead
    return found is not None and found.low is not None and found.method != EXACT


SY19 = Kind(
    code="SY19",
    severity=Severity.WARNING,
    title="completed runs without their main figure",
    why="A run seldom completes without its figure by chance.",
    advice=(
        "The benchmark printed no figure, or none that is a finite number. Those runs are "
        "in no mean. Read the runs' out.* files, correct the pattern in the study, and "
        "run `steelyard collect` again."
    ),
    example="x · clients=1 · seconds: 1",
    source="docs/benchmarks.md",
)


def check_missing_values(summary: Summary) -> Iterator[Finding]:
    hit = [row for row in select_main_rows(summary) if row.missing]
    if hit:
        yield Finding(
            SY19,
            f"{counted(sum(row.missing for row in hit), 'run')} completed without a value.",
            tuple(f"{format_row_location(row)}: {row.missing}" for row in hit),
        )


WIDE = 0.05  # half of the 95 % interval divided by the mean
TARGET = 0.01  # half width, as a share of the mean, for which repeats are computed

SY22 = Kind(
    code="SY22",
    severity=Severity.NOTE,
    title=f"intervals wider than ± {WIDE * 100:.0f} % of the mean",
    why="Smaller differences are not detectable: “not shown to differ” says little.",
    advice=(
        "Smaller differences than these intervals cannot be detected. The list shows how "
        "many runs would give ± 1 %: raise `repeat` in the study and run `steelyard "
        "submit` again."
    ),
    example=(
        "x · clients=1 · seconds: ± 31 % of the mean with n = 13; 16906 runs give ± 1 % in 9 "
        "of 10 studies"
    ),
    source="Kupper & Hafner (1989), The American Statistician 43(2)",
)


def check_wide_interval(summary: Summary) -> Iterator[Finding]:
    wide = [
        row
        for row in select_measured_rows(summary)
        if len(group_samples(row)[1]) >= MIN_PILOT and compute_half_share(row) > WIDE
    ]
    if wide:
        yield Finding(
            SY22,
            f"{len(wide)} of {len(select_measured_rows(summary))} means of a main figure.",
            tuple(f"{format_row_location(row)}: {describe_repeats(row)}" for row in wide),
        )


def compute_half_share(row: Row) -> float:
    """Return half of the interval as a share of the mean; 0 without an interval."""
    interval = row.interval
    if interval is None or interval.half_width is None or interval.mean == 0:
        return 0.0
    return interval.half_width / abs(interval.mean)


def describe_repeats(row: Row) -> str:
    """Return `± 6.2 % of the mean with n = 5; 240 runs give ± 1 % in 9 of 10 studies`."""
    assert row.interval is not None  # compute_half_share() has checked it
    precision = f"± {100 * compute_half_share(row):.2g} % of the mean with n = {row.n}"
    what = group_samples(row)[0]
    try:
        number = repeats_assured(sample_means(row), TARGET * abs(row.interval.mean))
    except ValueError:
        return f"{precision}; no number of {what}s one would make gives ± {100 * TARGET:g} %"
    return f"{precision}; {number} {what}s give ± {100 * TARGET:g} % in 9 of 10 studies"


SY26 = Kind(
    code="SY26",
    severity=Severity.ERROR,
    title="a figure came in two units",
    why="A mean over seconds and milliseconds has no meaning.",
    advice=(
        "The benchmark or its description changed between runs. The runs in the rarer unit "
        "are in no mean; repeat them, or collect them as a study of their own."
    ),
    example="x · seconds: ms in place of s in x-51a7535d-001",
    source="docs/benchmarks.md",
)


def check_other_unit(summary: Summary) -> Iterator[Finding]:
    others = summary.data.other_units
    if others:
        runs = {run for one in others for run in one.run_ids}
        yield Finding(
            SY26,
            f"In {counted(len(runs), 'run')} of {count_runs(summary)}; in no mean.",
            tuple(
                f"{one.variant} · {one.metric}: {one.unit or 'none'} in place of "
                f"{one.usual or 'none'} in {', '.join(one.run_ids)}"
                for one in others
            ),
        )


SY31 = Kind(
    code="SY31",
    severity=Severity.WARNING,
    title="the two sides computed with other vectors or another version of the program",
    why="Vectors twice as wide may halve the time: more than most nodes' overhead.",
    advice=(
        "A program with narrower vectors, or of another version, computes the same more "
        "slowly or faster: that is no cost of the node or the container as such. Give virtual"
        " nodes the processor's own model (host-passthrough), install the same programs "
        "everywhere, or compare with NASA's programs, which use SSE2 everywhere "
        "(docs/npb.md)."
    ),
    example="x · clients=2: npb.vectors default 128 bits, the baseline's x86-64-v3 256 bits",
    source="docs/npb.md",
)


def check_other_program(summary: Summary) -> Iterator[Finding]:
    """Find different programs, also if the node type is a factor: they are then a confounder."""
    facts, places = program_facts(summary), []
    for group in summary.groups if facts else ():
        own = facts.get((group.variant, group.label), {})
        base = facts.get((group.variant, group.baseline_label or group.label), {})
        chosen = finds_own_figures(group.variant)  # the study's own programs may be its levels
        for key in sorted(own.keys() & base.keys()):
            if len(own[key]) > 1 or (own[key] != base[key] and not chosen):
                own_values, there = (" and ".join(sorted(values[key])) for values in (own, base))
                places.append(
                    f"{format_location(group)}: {key} {own_values}, the baseline's {there}"
                )
    if places:
        text = f"{counted(len(places), 'difference')} in what the program was or used."
        yield Finding(SY31, text, tuple(places))


def program_facts(summary: Summary) -> Facts:
    """Return by group what the programs of its runs reported about themselves."""
    facts: Facts = {}
    for run in summary.data.runs:
        if run.counts and run.run_id in summary.data.program_tags:
            group_facts = facts.setdefault((run.variant, run.label), {})
            for key, values in summary.data.program_tags[run.run_id].items():
                group_facts.setdefault(key, set()).update(values)
    return facts


RULES = (
    Rule(SY04, check_few_runs),
    Rule(SY14, check_no_baseline),
    Rule(SY15, check_many_comparisons),
    Rule(SY19, check_missing_values),
    Rule(SY22, check_wide_interval),
    Rule(SY26, check_other_unit),
    Rule(SY31, check_other_program),
)
