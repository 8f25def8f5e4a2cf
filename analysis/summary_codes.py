"""The findings' codes, with severity, title and advice; docs/report.md lists them all.

A code is never given to another finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from steelyard.analysis.summary import Group, Summary

FEW_RUNS = 5  # half a 95 % interval is then 1.24 standard deviations, and no outlier is looked for
NOISY = 0.10  # sd / mean


class Severity(Enum):
    """How much a finding matters; the value is the word in the report."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Code(Enum):
    """(code, severity, title, advice)."""

    FAILED_RUNS = (
        "SY01",
        Severity.ERROR,
        "runs failed",
        (
            "Read the reason in the table of runs and the run's err.* files. `steelyard submit` again "
            "repeats only what is missing. If one condition fails more often, its means are of the "
            "runs that survived: compare with care."
        ),
    )
    UNFINISHED_RUNS = (
        "SY02",
        Severity.WARNING,
        "runs have not finished",
        "This is an interim report. Wait (`steelyard status`), collect and report again.",
    )
    INVALID_RUNS = (
        "SY03",
        Severity.ERROR,
        "runs are invalid: their conditions were not met",
        "They are in no mean. See the reason in the table of runs.",
    )
    FEW_RUNS = (
        "SY04",
        Severity.WARNING,
        f"fewer than {FEW_RUNS} runs",
        (
            "Raise `repeat` in the study and submit again: half of a 95 % interval is 1.24 standard "
            "deviations with 5 runs, 0.72 with 10, 0.34 with 35."
        ),
    )
    OUTLIERS = (
        "SY05",
        Severity.NOTE,
        "outliers (modified z-score above 3.5)",
        (
            "They are marked in the figures and stay in the means. Look what else ran on the node at "
            "that time; the median is not moved by them."
        ),
    )
    NOISY = (
        "SY06",
        Severity.WARNING,
        f"runs differ widely (standard deviation above {NOISY * 100:.0f} % of the mean)",
        "Use whole nodes, a longer problem, a fixed CPU governor, or more runs.",
    )
    NO_ENERGY = (
        "SY07",
        Severity.NOTE,
        "no energy was measured",
        (
            "Energy needs RAPL counters (/sys/class/powercap) that root can read: physical nodes, "
            "mostly. Nothing was put in its place."
        ),
    )
    MISSING_RECORDS = (
        "SY08",
        Severity.WARNING,
        "nodes left no record",
        (
            "Is the plugin on these nodes (`steelyard doctor`), and is the record folder on a file "
            "system that collect can read? Totals of these runs are missing, not 0."
        ),
    )
    INCOMPLETE_RECORDS = (
        "SY09",
        Severity.WARNING,
        "records were cut short",
        "Their totals cover only a part of the job and are in no mean; the samples are kept.",
    )
    MISSED_SAMPLES = (
        "SY10",
        Severity.NOTE,
        "the sampler lost samples or was late",
        (
            "The node was overloaded or its disk full. Totals are still right (they are counters); "
            "figures over time have holes. A lower --sample-rate helps."
        ),
    )
    MIXED_NODES = (
        "SY11",
        Severity.WARNING,
        "unlike nodes under one condition",
        (
            "Differences between nodes widen the interval. Ask for like nodes (`--constraint`, "
            "`[place.…]` in the study) or make the difference a factor."
        ),
    )
    UNLIKE_BASELINE = (
        "SY12",
        Severity.WARNING,
        "a condition ran on other nodes than its baseline",
        "The overhead then also contains the difference between the nodes.",
    )
    SHARED_NODES = (
        "SY13",
        Severity.NOTE,
        "jobs did not have their nodes to themselves",
        "Energy and network are of the whole node: neighbours are in them. Use `--exclusive`.",
    )
    NO_BASELINE = (
        "SY14",
        Severity.WARNING,
        "conditions without a baseline to compare with",
        "Name one in the study's [baseline], and let its runs finish.",
    )
    MANY_COMPARISONS = (
        "SY15",
        Severity.NOTE,
        "many comparisons at once",
        (
            "Each interval holds for 95 of 100 studies on its own; among many, some exclude 0 by "
            "chance. Decide beforehand which metric counts."
        ),
    )
    TREND = (
        "SY16",
        Severity.WARNING,
        "values drift with time",
        (
            "Warm-up, filling disks or a changing load: runs are then not independent, and intervals "
            "too narrow. Look at the series; leave the first runs to a warm-up study."
        ),
    )
    GAPS = (
        "SY17",
        Severity.NOTE,
        "other things were missing",
        "The section on gaps lists each with its reason.",
    )
    REPEATED_ATTEMPTS = (
        "SY18",
        Severity.NOTE,
        "runs needed more than one attempt",
        "The last attempt counts; the others are in the database (table attempts).",
    )
    MISSING_VALUES = (
        "SY19",
        Severity.WARNING,
        "completed runs lack their main figure",
        "The benchmark printed none or one that is no finite number. They are in no mean.",
    )

    def __init__(self, code: str, severity: Severity, title: str, advice: str) -> None:
        self.code = code
        self.severity = severity
        self.title = title
        self.advice = advice


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found: a sentence with numbers, and where."""

    kind: Code
    text: str
    places: tuple[str, ...] = ()


Check = Callable[[Summary], Iterator[Finding]]


def place(group: Group) -> str:
    """`variant · condition`."""
    return f"{group.variant} · {group.label}" if group.label else group.variant


def counted(number: int, what: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number} {what}" + ("" if number == 1 else "s")
