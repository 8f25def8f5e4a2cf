"""SY03: runs are invalid: their conditions were not met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity, counted
from steelyard.analysis.findings.rows import shares
from steelyard.analysis.summary.summary import Summary

KIND = Kind(
    code="SY03",
    severity=Severity.ERROR,
    title="runs are invalid: their conditions were not met",
    why="A number measured under other conditions than those asked for is worse than none.",
    advice=(
        "They are kept and left out of the means; `--include-invalid` takes them in. See the "
        "reason in the table of runs."
    ),
    example="1 run ended but did not meet the conditions: 17 packets dropped (1). In no mean.",
    source="docs/netem.md",
)


def check(summary: Summary) -> Iterator[Finding]:
    invalid = [run for run in summary.data.runs if run.valid is False]
    if invalid:
        reasons = Counter(run.invalid_reason or "no reason given" for run in invalid)
        words = "; ".join(f"{reason} ({number})" for reason, number in reasons.most_common(5))
        yield Finding(
            KIND,
            f"{counted(len(invalid), 'run')} ended but did not meet the conditions: {words}. "
            + ("In the means, as asked for." if invalid[0].counts else "In no mean."),
            shares(summary, lambda group: group.counts.invalid),
        )
