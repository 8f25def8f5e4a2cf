"""Measured round-trip times into a delay table, tc's own format (`*.dist`, tc-netem(8)).

A table is the inverse of the cumulative distribution at equal steps of probability, in 8192ths of
the standard deviation from the mean (iproute2, netem/maketable.c: TABLEFACTOR; linux,
net/sched/sch_netem.c: NETEM_DIST_SCALE). The kernel draws one of its values for each packet:
delay + jitter × value / 8192. Where the standard deviation is more than the mean, as a jitter here
may not be, it is in 8192ths of the mean: the draws are the same.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from steelyard.wrappers.base.errors import UsageError

UNIT = 8192
VALUES = 4096  # as iproute2's own tables have; the kernel takes 16384
FARTHEST = 32767  # 16 bits with a sign: four standard deviations
LEAST_SAMPLES = 20
MOST_JITTER_US = 2_147_483  # docs/netem.md: 2^31 - 1 ns
A_LINE = 8
SHARES = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)  # quantiles that are told


@dataclass(frozen=True)
class DelayTable:
    """What `--netem=delay=DELAY~JITTER/table:NAME` needs; `cut`: the share of samples that lie
    farther than four jitters from the mean, and so are brought nearer."""

    delay_us: int
    jitter_us: int
    values: tuple[int, ...]
    cut: float

    def delay_s(self, share: float) -> float:
        """The quantile that the kernel's draws will have."""
        return (self.delay_us + self.jitter_us * quantile(sorted(self.values), share) / UNIT) / 1e6

    def text(self, comments: Sequence[str]) -> str:
        """The file."""
        heads = "".join(f"# {comment}\n" for comment in comments)
        return heads + "".join(f"{line}\n" for line in self.lines())

    def lines(self) -> Iterator[str]:
        """Of numbers."""
        for at in range(0, len(self.values), A_LINE):
            yield " ".join(f"{value:6d}" for value in self.values[at : at + A_LINE])


def quantile(ordered: Sequence[float], share: float) -> float:
    """Linear between order statistics (R. Hyndman, Y. Fan, Am. Stat. 50 (1996) 361: type 7)."""
    place = share * (len(ordered) - 1)
    below = min(int(place), len(ordered) - 2)
    return ordered[below] + (place - below) * (ordered[below + 1] - ordered[below])


def learn(samples_s: Sequence[float]) -> DelayTable:
    """The table of samples in seconds; UsageError where they have no distribution to learn."""
    if len(samples_s) < LEAST_SAMPLES:
        raise UsageError(
            f"{len(samples_s)} round-trip times: expected at least {LEAST_SAMPLES} to learn a "
            "distribution from"
        )
    delay_us = round(statistics.fmean(samples_s) * 1e6)
    jitter_us = round(statistics.stdev(samples_s) * 1e6)
    if not jitter_us:
        raise UsageError(f"all round-trip times are alike: ask for --netem=delay={delay_us}us")
    jitter_us = min(jitter_us, delay_us, MOST_JITTER_US)  # more is refused: docs/netem.md
    ordered = sorted((sample * 1e6 - delay_us) / jitter_us * UNIT for sample in samples_s)
    steps = [quantile(ordered, (at + 0.5) / VALUES) for at in range(VALUES)]
    values = tuple(round(max(-FARTHEST, min(FARTHEST, step))) for step in steps)
    cut = sum(abs(value) > FARTHEST for value in ordered) / len(ordered)
    return DelayTable(delay_us, jitter_us, values, cut)
