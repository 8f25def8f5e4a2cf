"""Findings on runs that gave no result, or needed several attempts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from steelyard.analysis.findings.finding import (
    Finding,
    Kind,
    Rule,
    Severity,
    count_runs,
    format_shares,
)
from steelyard.analysis.summary.study_run import Run
from steelyard.analysis.summary.summary import WAITING, Summary
from steelyard.jobscripts.plurals import counted

SY01 = Kind(
    code="SY01",
    severity=Severity.ERROR,
    title="runs failed or were cancelled",
    why=(
        "The mean has only the runs that survived. Where one side fails more often, the "
        "comparison is unfair."
    ),
    advice=(
        "Read the reason in the table of runs and the run's err.* files. `steelyard submit "
        "--retry-failed` repeats them, those that were cancelled, too. If one condition fails more often, its means are of "
        "the runs that survived: compare with care."
    ),
    example="1 of 25 runs gave no result: 1 timeout.",
    source="docs/study.md",
)


def check_failed_runs(summary: Summary) -> Iterator[Finding]:
    failed = [run for run in summary.data.runs if run.state not in (*WAITING, "completed")]
    if failed:
        states = Counter(run.state for run in failed)
        by_state = ", ".join(f"{number} {state}" for state, number in states.most_common())
        yield Finding(
            SY01,
            f"{len(failed)} of {counted(count_runs(summary), 'run')} gave no result: {by_state}.",
            format_shares(summary, lambda group: group.counts.failed + group.counts.cancelled),
        )


SY02 = Kind(
    code="SY02",
    severity=Severity.WARNING,
    title="runs have not finished",
    why="Means still move, and blocks that are not full do not hold all conditions.",
    advice=(
        "This is an interim report. `steelyard status STUDY --watch` waits for the end; "
        "then run `steelyard collect` and `steelyard report` again."
    ),
    example="1 of 25 runs are waiting or running.",
    source="docs/study.md",
)


def check_unfinished_runs(summary: Summary) -> Iterator[Finding]:
    waiting = sum(group.counts.waiting for group in summary.groups)
    if waiting:
        yield Finding(
            SY02,
            f"{waiting} of {counted(count_runs(summary), 'run')} are waiting or running.",
            format_shares(summary, lambda group: group.counts.waiting),
        )


SY03 = Kind(
    code="SY03",
    severity=Severity.ERROR,
    title="runs are invalid: their conditions were not met",
    why=(
        "The numbers were measured under other conditions than requested, or Slurm suspended "
        "the run."
    ),
    advice=(
        "They are kept and left out of the means; `--include-invalid` takes them in. See the "
        "reason in the table of runs."
    ),
    example="1 run ended but did not meet the conditions: 17 packets dropped (1). In no mean.",
    source="docs/netem.md",
)


def check_invalid_runs(summary: Summary) -> Iterator[Finding]:
    invalid = [run for run in summary.data.runs if run.valid is False]
    if invalid:
        reasons = Counter(run.invalid_reason or "no reason given" for run in invalid)
        by_reason = "; ".join(f"{reason} ({number})" for reason, number in reasons.most_common(5))
        yield Finding(
            SY03,
            f"{counted(len(invalid), 'run')} ended but did not meet the conditions: {by_reason}. "
            + ("In the means, as asked for." if invalid[0].counts else "In no mean."),
            format_shares(summary, lambda group: group.counts.invalid),
        )


SY18 = Kind(
    code="SY18",
    severity=Severity.NOTE,
    title="runs needed more than one attempt or try",
    why="A failed attempt may leave warm caches, files, or a troubled node.",
    advice=(
        "The last one counts. Other attempts are in the database (table attempts); what a "
        "failed try left is in the run's folder (try.N)."
    ),
    example="1 of 24 runs. x-51a7535d-001: 3 attempts",
    source="docs/study.md",
)


def check_repeated_attempts(summary: Summary) -> Iterator[Finding]:
    again = [run for run in summary.data.runs if run.attempts > 1 or run.tries > 1]
    if again:
        yield Finding(
            SY18,
            f"{len(again)} of {counted(count_runs(summary), 'run')}.",
            tuple(f"{run.run_id}: {format_attempts(run)}" for run in again),
        )


def format_attempts(run: Run) -> str:
    """Return `2 attempts, 3 tries in the last`."""
    details = [counted(run.attempts, "attempt")] if run.attempts > 1 else []
    return ", ".join([*details, f"{run.tries} tries in the last"] if run.tries > 1 else details)


SY29 = Kind(
    code="SY29",
    severity=Severity.ERROR,
    title="the study has no runs",
    why="There is nothing to report.",
    advice=(
        "The plan is empty. Run `steelyard check STUDY.toml`: does the file have a "
        "[[benchmark]], and every factor a level? Then submit and collect it."
    ),
    example="There is nothing to report.",
    source="docs/study.md",
)


def check_no_runs(summary: Summary) -> Iterator[Finding]:
    if not summary.data.runs:
        yield Finding(SY29, "There is nothing to report.", ())


RULES = (
    Rule(SY01, check_failed_runs),
    Rule(SY02, check_unfinished_runs),
    Rule(SY03, check_invalid_runs),
    Rule(SY18, check_repeated_attempts),
    Rule(SY29, check_no_runs),
)
