"""SY24: samples, records and the scheduler disagree, as collect found them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity, counted
from steelyard.analysis.stats.readable import quantity
from steelyard.analysis.summary.disagreements import Disagreement
from steelyard.analysis.summary.summary import Summary
from steelyard.facts.quantities import METRICS

MOST_PLACES = 20  # the table `checks` has all

KIND = Kind(
    code="SY24",
    severity=Severity.WARNING,
    title="samples, records and the scheduler disagree",
    why=(
        "Two ways to count one thing that are further apart than both explain: at least one "
        "is wrong."
    ),
    advice=(
        "One of them counts something else, or wrongly. The table `checks` has both values "
        "and what was allowed (docs/collect.md); until it is clear, do not build on that "
        "quantity."
    ),
    example="x-51a7535d-001: CPU time: records 10 s, scheduler 20 s",
    source="docs/collect.md",
)


def check(summary: Summary) -> Iterator[Finding]:
    checks = summary.data.checks
    if checks.disagreements:
        kinds = Counter(METRICS[d.quantity].words for d in checks.disagreements)
        runs = len({d.run_id for d in checks.disagreements})
        yield Finding(
            KIND,
            f"{', '.join(kinds)}: further apart than the ways of counting explain in {runs} of "
            f"{counted(checks.runs, 'run')} that could be checked.",
            tuple(words(d) for d in checks.disagreements[:MOST_PLACES]),
        )


def words(found: Disagreement) -> str:
    """`RUN on NODE: CPU time: records 10.00 s, scheduler 20.00 s`."""
    where = f"{found.run_id} on {found.node}" if found.node else found.run_id
    a, b = (quantity(value, found.unit) for value in (found.value_a, found.value_b))
    return f"{where}: {METRICS[found.quantity].words}: {found.source_a} {a}, {found.source_b} {b}"
