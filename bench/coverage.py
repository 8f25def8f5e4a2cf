"""Whether the statistics hold their guarantees: 10,000 simulated studies for every setting.

Each study is drawn from a known distribution and analyzed by the functions that the report uses.
Coverage is how often the reported 95 % interval contains the true value. It must be within 93.5 …
96.5 %, or at least 93.5 in settings that no method meets so closely, such as rare delays. False
alarms are how often a difference, warm-up, second hump, break or drift is reported although none
exists (at most 5.0 %). The peer in the table is what a script would do instead: scipy's plain BCa
bootstrap on every tenth study, uncorrected tests, and stopping at the first narrow 95 % interval. A
setting within 2 standard errors of a limit is decided by ten times as many studies. Known
limitations have their own table and no guarantee.

Last line: JSON with coverage_min, coverage_max, false_alarm_max (shares of 1), studies, seconds.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import sys
import time
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from multiprocessing.pool import Pool

import numpy as np
from coverage_alarms import (
    block_verdict_study,
    breaks,
    drift_study,
    inner_study,
    job_verdict_study,
    lines_study,
    many_humps_study,
    many_warm_ups_study,
    node_study,
    series_study,
    tells_difference,
    verdict_study,
)
from coverage_draws import LEVELS, SIGMA_HALF, Study, delayed, following, heavy, normal, skewed
from coverage_intervals import (
    block_slope_study,
    block_study,
    effect_study,
    few_blocks_study,
    grown_study,
    job_effect_study,
    job_study,
    mean_by_group_study,
    mean_study,
    overhead_study,
    paired_effect_study,
    share_study,
    slope_study,
    split_study,
    stopping_study,
    tells_mean,
    tells_overhead,
    tolerance_study,
)
from coverage_scaling import ALARMS as SCALING_ALARMS
from coverage_scaling import CAUTIOUS as SCALING_CAUTIOUS
from coverage_scaling import INTERVALS as SCALING_INTERVALS

from steelyard.analysis.stats.bimodality import find_two_humps
from steelyard.analysis.stats.drift_and_warm_up import find_warm_up
from steelyard.wrappers.base.signals import ending_on_sigterm

FAMILY = 20

# Must be within 93.5 … 96.5 %.
INTERVALS: dict[str, Study] = {
    "mean, normal, n = 3": mean_study(normal, 3),
    "mean, normal, n = 5": mean_study(normal, 5),
    "mean, skewed, n = 35": mean_study(skewed, 35),
    "mean, heavy tails, n = 10": mean_study(heavy, 10),
    **{f"mean, log-normal 0.5, n = {n}": mean_study(skewed, n, SIGMA_HALF) for n in (3, 5, 10, 35)},
    **{
        f"mean by block, {runs} in {blocks}": mean_by_group_study(blocks, runs // blocks, 0.1)
        for runs, blocks in ((10, 5), (20, 5), (35, 5), (20, 10))
    },
    "mean by job, 5 of 4": mean_by_group_study(5, 4, 0.05),
    "mean by job, 10 of 5": mean_by_group_study(10, 5, 0.1),
    "overhead, normal, 5 + 5": overhead_study(normal, 5, 5),
    "overhead, normal, 5 + 35": overhead_study(normal, 5, 35),
    "overhead, spread 20 and 2 %, 5 + 20": overhead_study(normal, 5, 20, 0.2, 0.02),
    "overhead, spread 2 and 20 %, 5 + 20": overhead_study(normal, 5, 20, 0.02, 0.2),
    "overhead, skewed, 5 + 5": overhead_study(skewed, 5, 5, 0.3),
    "overhead, normal 20 %, 10 + 10": overhead_study(normal, 10, 10, 0.2),
    "overhead, skewed, 10 + 35": overhead_study(skewed, 10, 35, 0.15),
    "overhead, skewed, 35 + 35": overhead_study(skewed, 35, 35, 0.3),
    "overhead by job, 5 + 5 of 4": job_study(5, 4, 0.05),
    "overhead by job, 10 + 10 of 5": job_study(10, 5, 0.1),
    "overhead by job, 15 + 15 of 3 to 5": job_study(15, 5, 0.1, 3),
    "overhead by job, 15 + 15 of 1 to 5": job_study(15, 5, 0.1, 1),
    "overhead by block, 10 of 1 + 1": block_study(10, 1, 0.1),
    "overhead by block, 35 of 1 + 1": block_study(35, 1, 0.2),
    "overhead by block, 10 of 3 + 3": block_study(10, 3, 0.0),
    "overhead by block, skewed, 10 of 1 + 1": block_study(10, 1, 0.1, skewed),
    "slope, even spread, 5 x 5": slope_study(0.0),
    "slope, growing spread, 5 x 5": slope_study(3.0),
    "slope, 3 levels x 5": slope_study(0.0, 3, 5),
    "slope, skewed, 5 x 10": slope_study(0.0, 5, 10, skewed),
    "slope by block, 10 x 5": block_slope_study(10, 0.5),
    "effect size, g = 0.8, 3 + 3": effect_study(3, 0.8),
    "effect size, g = 12, 5 + 5": effect_study(5, 12.0),
    "effect size, g = 0.8, 10 + 10": effect_study(10, 0.8),
    "effect size, g = 0, 35 + 35": effect_study(35, 0.0),
    "effect size by job, 10 + 10 of 5": job_effect_study(10, 5, 0.5, 0.8),
    "effect size by block, 10": paired_effect_study(10, 0.8, 0.8),
    "effect size by block, g = 5, 35": paired_effect_study(35, 5.0, 0.5),
    "share of latency, 5 + 5, 5 + 5": split_study(5, 5),
    "share of latency, 20 + 20, 5 + 5": split_study(20, 5),
    "share of latency, skewed, 10 + 10": split_study(10, 10, skewed, 0.15),
    "loss, 1 % of 4000 packets": share_study(0.01, 4000),
    "loss, 10 % of 100 packets": share_study(0.1, 100),
    "stopped, normal, about 10": stopping_study(normal, 0.05, 10),
    "stopped, normal, about 25": stopping_study(normal, 0.05, 25),
    "stopped, skewed, about 35": stopping_study(skewed, 0.3, 35),
    "stopped as submit does": grown_study(0.05, 0.02, tells_mean),
    "overhead of stopped conditions": grown_study(0.05, 0.02, tells_overhead),
    **SCALING_INTERVALS,
}

# Must be at least 93.5 %: no method known to us is closer to 95 here without falling below it
# elsewhere.
CAUTIOUS: dict[str, Study] = {
    "overhead, normal, 3 + 3": overhead_study(normal, 3, 3),
    "overhead, heavy tails, 10 + 10": overhead_study(heavy, 10, 10, 0.1),
    "overhead, heavy tails, 35 + 35": overhead_study(heavy, 35, 35, 0.1),
    **{
        f"overhead, log-normal 0.5, {n} + {n}": overhead_study(skewed, n, n, SIGMA_HALF)
        for n in (3, 5, 10, 35)
    },
    **{
        f"overhead, 1 in 20 x {times}, {n} + {n}": overhead_study(delayed(times), n, n)
        for times in (3, 10)
        for n in (5, 10, 20, 35)
    },
    "overhead by block, 1 in 20 x 3, 10": block_study(10, 1, 0.1, delayed(3)),
    "overhead by block, 1 in 20 x 3, 35": block_study(35, 1, 0.1, delayed(3)),
    "limit, straight line, n = 5": tolerance_study(lambda x: 0.003 * x, 100 / 3, 5, 0.02),
    "limit, line by block, n = 10": tolerance_study(lambda x: 0.003 * x, 100 / 3, 10, 0.02, 0.1),
    "limit, square, n = 10": tolerance_study(lambda x: 2e-5 * x * x, math.sqrt(5000), 10, 0.02),
    "limit, root, n = 5": tolerance_study(lambda x: 0.015 * math.sqrt(x), 400 / 9, 5, 0.02),
    "limit, bend at a level, n = 30": tolerance_study(
        lambda x: 0.004 * max(x - 20, 0), 45.0, 30, 0.05
    ),
    "limit, jump between levels, n = 10": tolerance_study(lambda x: 0.3 * (x > 30), 30.0, 10, 0.02),
    "limit beyond the levels, n = 10": tolerance_study(lambda x: 5e-4 * x, 200.0, 10, 0.02),
    "overhead, 10 + 10 in 5 blocks": few_blocks_study(5, 2, 0.1),
    "overhead, 35 + 35 in 5 blocks": few_blocks_study(5, 7, 0.1),
    **SCALING_CAUTIOUS,
}

# Must be at most 5 % of studies.
ALARMS: dict[str, Study] = {
    "verdict, normal, 5 + 5": verdict_study(normal, 5, 1),
    "verdict, heavy tails, 5 + 5": verdict_study(heavy, 5, 1),
    "verdict, skewed, 35 + 35": verdict_study(skewed, 35, 1),
    "verdict, 1 in 20 x 3, 10 + 10": verdict_study(delayed(3), 10, 1),
    "verdict, spread 5 and 20 %, 5 + 20": verdict_study(normal, 5, 1, 20, share=0.2),
    "verdict by job, 5 + 5 of 4": job_verdict_study(5, 4, 0.05),
    "verdict by block, 10": block_verdict_study(10, 0.1),
    "verdict of stopped conditions": grown_study(0.05, 0.02, tells_difference),
    f"any of {FAMILY} verdicts, 10 + 10": verdict_study(normal, 10, FAMILY),
    "warm-up, n = 12": series_study(normal, 12, find_warm_up),
    "warm-up, skewed, n = 35": series_study(skewed, 35, find_warm_up),
    "any of 10 warm-ups, n = 20": many_warm_ups_study(skewed, 20, 10),
    "two humps, normal, n = 35": series_study(normal, 35, find_two_humps),
    "two humps, skewed, n = 100": series_study(skewed, 100, find_two_humps),
    "any of 5 with two humps, n = 35": many_humps_study(normal, 35, 5),
    "break in a line, 5 x 5": series_study(normal, len(LEVELS), breaks),
    "rise or break of any of 5 lines": lines_study(5),
    "warm-up inside, 5 runs of 3": inner_study(5, 3),
    "warm-up inside, 20 runs of 30": inner_study(20, 30),
    "drift, 1 condition, n = 35": drift_study(skewed, 1, 35),
    "drift, 2 conditions, n = 10": drift_study(normal, 2, 10),
    "drift, 10 conditions, n = 5": drift_study(normal, 10, 5),
    "node effect in any of 5, 4 x 5": node_study(5, 4, 5),
    **SCALING_ALARMS,
}

# No guarantee (docs/report.md): no method for so few runs has the stated level (Welch's test of 3
# against 35), or the runs violate its assumptions (half of the studies of 10 runs contain none of
# the delayed ones; each run correlates with the previous one).
LIMITS: dict[str, Study] = {
    "overhead, normal, 3 + 35": overhead_study(normal, 3, 35),
    "overhead, log-normal 0.5, 5 + 35": overhead_study(skewed, 5, 35, SIGMA_HALF),
    "overhead, 1 in 20 x 3, 5 + 35": overhead_study(delayed(3), 5, 35),
    "told a difference: 5 + 35": verdict_study(normal, 5, 1, 35),
    "told a difference: 3 + 35": verdict_study(normal, 3, 1, 35),
    **{
        f"mean, 1 in 20 x {times}, n = {n}": mean_study(delayed(times), n)
        for times in (3, 10)
        for n in (5, 10, 20, 35)
    },
    **{
        f"mean, AR(1) {correlation}, n = {n}": mean_study(following(correlation), n)
        for correlation in (0.5, 0.8)
        for n in (5, 10, 35)
    },
    "loss, 0.1 % of 1000 packets": share_study(0.001, 1000),
}
SETTINGS = INTERVALS | CAUTIOUS | ALARMS | LIMITS


STUDIES = 10_000
MORE, LEAST = 9, 1000  # factor of additional studies if the first do not decide; least number
PEER_EVERY = 10
CHUNKS = 8
COVERAGE = (0.935, 0.965)
FALSE_ALARMS = 0.0505  # 5.0 % as printed: an exact test of 5 % is at the limit


@dataclass
class Tally:
    """The number of studies, and of those whose interval held (or that had an alarm)."""

    studies: int = 0
    hits: int = 0
    untold: int = 0  # studies without an interval
    peer_studies: int = 0
    peer_hits: int = 0

    @property
    def share(self) -> float:
        return self.hits / (self.studies - self.untold)

    @property
    def peer(self) -> str:
        return f"{100 * self.peer_hits / self.peer_studies:.1f}" if self.peer_studies else "–"


def simulate(job: tuple[str, int, int]) -> tuple[str, Tally]:
    """Simulate a part of a setting's studies, with a seed of the setting's name and the part."""
    name, part, studies = job
    study = SETTINGS[name]
    chance = np.random.default_rng((zlib.crc32(name.encode()), part))
    tally = Tally()
    for number in range(studies):
        hit, peer = study(chance, number % PEER_EVERY == 0)
        tally.studies += 1
        tally.untold += hit is None
        tally.hits += hit is True
        if peer is not None:
            tally.peer_studies += 1
            tally.peer_hits += peer
    return name, tally


def run(studies: int) -> dict[str, Tally]:
    """Simulate all settings, on all processors."""
    tallies = {name: Tally() for name in SETTINGS}
    each = studies // CHUNKS
    with multiprocessing.Pool() as pool:
        add(pool, tallies, [(name, part, each) for name in SETTINGS for part in range(CHUNKS)])
        promised = (*INTERVALS, *CAUTIOUS, *ALARMS) if studies >= LEAST else ()
        close = [name for name in promised if is_close(name, tallies[name])]
        more = range(CHUNKS, CHUNKS * (1 + MORE))
        add(pool, tallies, [(name, part, each) for name in close for part in more])
    return tallies


def add(pool: Pool, tallies: dict[str, Tally], jobs: list[tuple[str, int, int]]) -> None:
    """Add the results of these jobs."""
    for name, tally in pool.imap_unordered(simulate, jobs):
        whole = tallies[name]
        for field in vars(whole):
            setattr(whole, field, getattr(whole, field) + getattr(tally, field))


def is_close(name: str, tally: Tally) -> bool:
    """Whether chance could have moved the share across a limit, in either direction."""
    if name in ALARMS:
        ends: tuple[float, ...] = (FALSE_ALARMS,)
    else:
        ends = COVERAGE if name in INTERVALS else COVERAGE[:1]
    return any(
        abs(tally.share - end) < 2 * math.sqrt(end * (1 - end) / tally.studies) for end in ends
    )


def print_table(tallies: dict[str, Tally], title: str, settings: Iterable[str]) -> None:
    """Print shares in percent, and the number of studies behind each."""
    print(f"{title:<38} {'ours %':>7} {'peer %':>7} {'none %':>7} {'studies':>8}")
    for name in settings:
        found = tallies[name]
        print(
            f"  {name:<36} {100 * found.share:>7.2f} {found.peer:>7} "
            f"{100 * found.untold / found.studies:>7.1f} {found.studies:>8}"
        )


def main() -> int:
    """Print the tables and the line of JSON; return 1 if a guarantee does not hold."""
    studies = int(sys.argv[1]) if len(sys.argv) > 1 else STUDIES
    begin = time.monotonic()
    tallies = run(studies)
    print_table(tallies, "95 % intervals", INTERVALS)
    print_table(tallies, "95 % intervals, wider", CAUTIOUS)
    print_table(tallies, "false alarms", ALARMS)
    print_table(tallies, "known limits", LIMITS)
    covered = [tallies[name].share for name in INTERVALS]
    wider = [tallies[name].share for name in CAUTIOUS]
    alarms = [tallies[name].share for name in ALARMS]
    figures = {
        "coverage_min": min(covered + wider),
        "coverage_max": max(covered),
        "false_alarm_max": max(alarms),
        "settings": len(covered) + len(wider) + len(alarms),
        "studies": studies // CHUNKS * CHUNKS,
        "seconds": round(time.monotonic() - begin, 1),
    }
    kept = COVERAGE[0] <= min(covered + wider) and max(covered) <= COVERAGE[1]
    kept = kept and max(alarms) <= FALSE_ALARMS
    print(
        f"promised: coverage 93.5 … 96.5 %, false alarms at most 5.0 %: {'kept' if kept else 'NOT kept'}"
    )
    print(json.dumps(figures))
    return 0 if kept else 1


if __name__ == "__main__":
    with ending_on_sigterm():
        sys.exit(main())
