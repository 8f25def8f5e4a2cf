"""The findings' codes, with severity, title and advice; docs/report.md lists them all.

A code is never given to another finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from steelyard.analysis.summary.summary import Group, Summary

FEW_RUNS = 5  # half a 95 % interval is then 1.24 standard deviations, and no outlier is looked for
NOISY = 0.10  # sd / mean
WIDE = 0.05  # half of the 95 % interval / mean


class Severity(Enum):
    """How much a finding matters; the value is the word in the report."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Kind(Enum):
    """A kind of finding: (code, severity, title, advice)."""

    def __init__(self, code: str, severity: Severity, title: str, advice: str) -> None:
        self.code = code
        self.severity = severity
        self.title = title
        self.advice = advice


class Code(Kind):
    """What can be found in any study."""

    FAILED_RUNS = (
        "SY01",
        Severity.ERROR,
        "runs failed",
        (
            "Read the reason in the table of runs and the run's err.* files. `steelyard submit "
            "--retry-failed` repeats them. If one condition fails more often, its means are of the "
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
        (
            "They are kept and left out of the means; `--include-invalid` takes them in. See the "
            "reason in the table of runs."
        ),
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
        "Joules and network are of the whole node: left out where it may be shared. `--exclusive`.",
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
            "Verdicts are corrected for their number (Holm); the intervals are not: each holds for 95 "
            "of 100 studies on its own. Decide beforehand which metric counts."
        ),
    )
    TREND = (
        "SY16",
        Severity.WARNING,
        "values drift with time",
        (
            "Warm-up, filling disks, heat, or the load of the hour: runs are then not independent, and "
            "intervals too narrow. Look at the series. Let conditions take turns (`blocks = repeat` in "
            "the study: overheads are then paired by block and the drift drops out), spread the study "
            "over the hours that it speaks for, leave the first runs to a warm-up study."
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
        "runs needed more than one attempt or try",
        (
            "The last one counts. Other attempts are in the database (table attempts); what a failed "
            "try left is in the run's folder (try.N)."
        ),
    )
    MISSING_VALUES = (
        "SY19",
        Severity.WARNING,
        "completed runs lack their main figure",
        "The benchmark printed none or one that is no finite number. They are in no mean.",
    )
    WARM_UP = (
        "SY20",
        Severity.WARNING,
        "the first runs are unlike the rest (warm-up)",
        (
            "Both means are given: say which you use, and why. Warm up before the study (a run that "
            "is not counted, `cache`), or leave the first runs out on both sides."
        ),
    )
    TWO_HUMPS = (
        "SY21",
        Severity.WARNING,
        "runs gather around two values",
        (
            "A mean between two humps describes no run. Look what divides them: nodes, sockets, time "
            "of day, a turbo clock. It may have to be a factor."
        ),
    )
    WIDE_INTERVAL = (
        "SY22",
        Severity.NOTE,
        f"intervals wider than ± {WIDE * 100:.0f} % of the mean",
        "Smaller differences cannot be seen here. The repeats that ± 1 % takes are told for each.",
    )
    NOT_UNDONE = (
        "SY23",
        Severity.ERROR,
        "network conditions were not undone",
        (
            "Their later jobs may have run under them, too. Root there: `steelyard netem show` says "
            "whose they are, `steelyard netem clear --all` undoes them."
        ),
    )
    SOURCES_DISAGREE = (
        "SY24",
        Severity.WARNING,
        "samples, records and the scheduler disagree",
        (
            "One of them counts something else, or wrongly. The table `checks` has both values and "
            "what was allowed (docs/collect.md); until it is clear, do not build on that quantity."
        ),
    )
    NODE_EFFECT = (
        "SY25",
        Severity.WARNING,
        "values depend on the node",
        (
            "Part of the spread is the nodes'. Look what tells the slow ones apart (clock, cooling, "
            "cables), let every condition run on all of them, or name the nodes in the study."
        ),
    )
    OTHER_UNIT = (
        "SY26",
        Severity.ERROR,
        "a figure came in two units",
        (
            "The benchmark or its description changed between runs. The runs in the rarer unit are in "
            "no mean; repeat them, or collect them as a study of their own."
        ),
    )
    NO_SPLIT = (
        "SY27",
        Severity.WARNING,
        "latency and throughput cannot be told apart",
        (
            "The model of the shares (docs/report.md) does not fit here, so none are told. Compare runs "
            "that move the same bytes and compute the same, with `requests = single` and without "
            "read-ahead, beside bulk transfers with as many clients and streams."
        ),
    )
    INNER_WARM_UP = (
        "SY28",
        Severity.WARNING,
        "the first iterations inside the runs are unlike the rest (warm-up)",
        (
            "A run's value is the mean of all its iterations, these too; both means are given. Say which "
            "you use, leave them out on both sides alike, or let `warm_up = 1` in [job] run once unmeasured."
        ),
    )
    NO_RUNS = (
        "SY29",
        Severity.ERROR,
        "the study has no runs",
        (
            "Its plan is empty. Look whether this is the right study, whether its file has a "
            "[[benchmark]] and every factor a level, and submit and collect it again."
        ),
    )
    OTHER_NODE_TYPE = (
        "SY30",
        Severity.WARNING,
        "runs ran on nodes of another type than their condition says",
        (
            "What is told between these levels is no difference between such nodes. With Slurm look at "
            "the nodes' Features (docs/study.md); without a scheduler all runs are on one machine."
        ),
    )
    OTHER_PROGRAM = (
        "SY31",
        Severity.WARNING,
        "the two sides computed with other vectors or another version of the program",
        (
            "A program with narrower vectors, or of another version, computes the same more slowly "
            "or faster: that is no cost of the node or the container as such. Give virtual nodes "
            "the processor's own model (host-passthrough), install the same programs everywhere, or "
            "compare with NASA's programs, which use SSE2 everywhere (docs/npb.md)."
        ),
    )
    STOLEN_TIME = (
        "SY32",
        Severity.WARNING,
        "the CPU time of virtual nodes holds what their host gave to others",
        (
            "CPU seconds are then up to the wall time, however little the host's processor did: three "
            "times too many on a busy one (docs/virtual.md). Compare `elapsed_s`, or keep the host to "
            "the guest alone."
        ),
    )


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found: a sentence with numbers, and where."""

    kind: Kind
    text: str
    places: tuple[str, ...] = ()


Check = Callable[[Summary], Iterator[Finding]]


def place(group: Group) -> str:
    """`variant · condition`."""
    return f"{group.variant} · {group.label}" if group.label else group.variant


def counted(number: int, what: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number} {what}" + ("" if number == 1 else "s")
