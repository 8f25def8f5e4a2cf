"""Whether the statistics keep what they promise: 10,000 simulated studies for every setting.

Each study is drawn from a known distribution and goes through the functions that the report uses.
Coverage: how often the 95 % interval that is told holds the true value (to be within 93.5 … 96.5 %;
of settings that no method meets so closely, such as rare delays, at least 93.5). False alarms: how often a difference, warm-up, second hump, break or drift is told where there is none (at
most 5.0 %). The peer in the table is what a script would do instead: scipy's plain BCa bootstrap on
every tenth study, uncorrected tests, and stopping at the first narrow 95 % interval.
A setting within 2 standard errors of what is promised is decided by ten times as many studies.
Known limits stand in a table of their own and are promised nowhere.
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
from coverage_settings import ALARMS, CAUTIOUS, INTERVALS, LIMITS, SETTINGS

from steelyard.wrappers.base.signals import ending_on_sigterm

STUDIES = 10_000
MORE, LEAST = 9, 1000  # times as many again where the first, if not so few, do not decide
PEER_EVERY = 10
CHUNKS = 8
COVERAGE = (0.935, 0.965)
FALSE_ALARMS = 0.0505  # 5.0 %, as it is told: an exact test of 5 % lies on it


@dataclass
class Tally:
    """How many studies, and how many of them held (or told)."""

    studies: int = 0
    hits: int = 0
    untold: int = 0  # of these: without an interval
    peer_studies: int = 0
    peer_hits: int = 0

    @property
    def share(self) -> float:
        return self.hits / (self.studies - self.untold)

    @property
    def peer(self) -> str:
        return f"{100 * self.peer_hits / self.peer_studies:.1f}" if self.peer_studies else "–"


def simulate(job: tuple[str, int, int]) -> tuple[str, Tally]:
    """A part of a setting's studies; the seed is the part's, and of the setting's name."""
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
    """All settings, on all processors."""
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
    """What these jobs find."""
    for name, tally in pool.imap_unordered(simulate, jobs):
        whole = tallies[name]
        for field in vars(whole):
            setattr(whole, field, getattr(whole, field) + getattr(tally, field))


def is_close(name: str, tally: Tally) -> bool:
    """Whether chance might have carried the share over what is promised, to either side."""
    if name in ALARMS:
        ends: tuple[float, ...] = (FALSE_ALARMS,)
    else:
        ends = COVERAGE if name in INTERVALS else COVERAGE[:1]
    return any(
        abs(tally.share - end) < 2 * math.sqrt(end * (1 - end) / tally.studies) for end in ends
    )


def print_table(tallies: dict[str, Tally], title: str, settings: Iterable[str]) -> None:
    """Shares in percent, and how many studies they rest on."""
    print(f"{title:<38} {'ours %':>7} {'peer %':>7} {'none %':>7} {'studies':>8}")
    for name in settings:
        found = tallies[name]
        print(
            f"  {name:<36} {100 * found.share:>7.2f} {found.peer:>7} "
            f"{100 * found.untold / found.studies:>7.1f} {found.studies:>8}"
        )


def main() -> int:
    """Print the tables and the line of JSON; exit code 1 when a promise is not kept."""
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
