"""The order in which several commands are measured, what is done around each run, and when it ends.

In rounds every command runs once, in an order drawn anew: what drifts on the machine hits all alike.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from steelyard.analysis.stats.basics import CONFIDENCE
from steelyard.analysis.stats.planning import FIRST_LOOK, STOPPING_CONFIDENCE, enough
from steelyard.wrappers.base import errors
from steelyard.wrappers.run.command_line import Command
from steelyard.wrappers.run.measurement import Measurement

SEED = 1


@dataclass(frozen=True)
class Hooks:
    """Command lines around the runs of one command, for sh; None: nothing is to be done."""

    setup: str | None = None  # once, before its first run
    prepare: str | None = None  # before every run, warm-ups too
    conclude: str | None = None  # after every run
    cleanup: str | None = None  # once, after its last run


@dataclass(frozen=True)
class Plan:
    """How often, in which order, and when it is enough."""

    repeat: int = 1  # runs of each command; with `until` the least
    warm_up: int = 0  # of each, before the first that counts
    until: float | None = None  # half width of elapsed's interval, as a share of its mean
    max_repeat: int = 1000
    max_time_s: float = 600.0  # no run begins later; with `until`
    interleaved: bool = True
    continue_on_failure: bool = False  # at a failure
    pass_code: bool = True  # the failed command's exit code is ours

    @property
    def confidence(self) -> float:
        """That intervals are computed with so that they hold 95 %, also after a rule stopped it."""
        return CONFIDENCE if self.until is None else STOPPING_CONFIDENCE

    @property
    def is_one_run(self) -> bool:
        """Of each command."""
        return self.repeat == 1 and self.until is None and not self.warm_up


@dataclass(frozen=True)
class Ending:
    """Why it ended before its time."""

    text: str
    exit_code: int


@dataclass
class Course:
    """What came of it: the runs of each command in their order, and the place in the order of all."""

    runs: list[list[Measurement]]
    order: list[int] = field(default_factory=list)  # places of commands as they were run
    ended: Ending | None = None
    enough: bool | None = None  # with `until`: whether every interval became narrow enough


# Measures the command of that place: its number of run, and whether the run is a warm-up.
Measure = Callable[[int, int, bool], Measurement]


class StoppedError(Exception):
    """Nothing more is run."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending.text)
        self.ending = ending


@dataclass
class Session:
    """Runs a plan."""

    commands: Sequence[Command]
    hooks: Sequence[Hooks]
    plan: Plan
    measure: Measure
    tell: Callable[[Course], None]  # after every run that counts
    course: Course = field(init=False)

    def __post_init__(self) -> None:
        self.course = Course([[] for _ in self.commands])

    def go(self) -> Course:
        """All runs; Ctrl-C and failures end it, and what is known until then is the answer."""
        try:
            for group in self.groups():
                begun: list[int] = []
                try:
                    self.run_group(group, begun)
                finally:
                    self.clean_up(begun)
        except StoppedError as stopped:
            self.course.ended = stopped.ending
        except KeyboardInterrupt:
            self.course.ended = Ending("interrupted", errors.INTERRUPTED)
        return self.course

    def groups(self) -> list[list[int]]:
        """Places of commands that run in turn; one group after another."""
        places = list(range(len(self.commands)))
        return [places] if self.plan.interleaved else [[place] for place in places]

    def run_group(self, group: Sequence[int], begun: list[int]) -> None:
        """Set up, warm up, and measure."""
        for place in group:
            begun.append(place)
            self.hook("setup", place)
        for number in range(1, self.plan.warm_up + 1):
            for place in group:
                self.one(place, number, warm_up=True)
        begin = time.monotonic()
        for place in self.turns(group, begin):
            measured = self.one(place, len(self.course.runs[place]) + 1, warm_up=False)
            self.course.order.append(place)
            self.course.runs[place].append(measured)
            self.tell(self.course)
            self.check(place, measured, "")

    def turns(self, group: Sequence[int], begin: float) -> Iterator[int]:
        """Whose turn it is, until it is enough."""
        drawn = random.Random(SEED)
        while not self.is_done(group, begin):
            round_ = list(group)
            drawn.shuffle(round_)
            yield from round_

    def is_done(self, group: Sequence[int], begin: float) -> bool:
        """As often as asked for; with `until` narrow enough, or at a limit."""
        plan, runs = self.plan, [self.course.runs[place] for place in group]
        count = min(map(len, runs))
        if plan.until is None or count < plan.repeat:
            return count >= plan.repeat
        narrow = all(is_narrow(one, plan.until) for one in runs)
        if not narrow and count < plan.max_repeat and time.monotonic() - begin < plan.max_time_s:
            return False
        self.course.enough = narrow and self.course.enough is not False
        return True

    def one(self, place: int, number: int, warm_up: bool) -> Measurement:
        """One run with what is done around it."""
        self.hook("prepare", place)
        measured = self.measure(place, number, warm_up)
        self.hook("conclude", place)
        if warm_up:
            self.check(place, measured, "warm-up ")
        return measured

    def check(self, place: int, measured: Measurement, what: str) -> None:
        """A failure ends everything, unless it is to go on."""
        if measured.failed and not self.plan.continue_on_failure:
            text = f"{what}run {measured.number} of {self.commands[place].text} failed"
            code = measured.shell_code if self.plan.pass_code else errors.RUNS_FAILED
            raise StoppedError(Ending(f"{text} ({measured.end})", code))

    def hook(self, name: str, place: int) -> None:
        """Execute it; what it says is shown only when it fails, which ends everything."""
        text = getattr(self.hooks[place], name)
        if text is None:
            return
        done = subprocess.run(
            ["sh", "-c", text],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
        )
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip()
            last = f": {said.splitlines()[-1]}" if said else ""
            how = f"--{name} '{text}' failed (exit code {done.returncode}){last}"
            raise StoppedError(Ending(how, errors.RUNS_FAILED))

    def clean_up(self, begun: Sequence[int]) -> None:
        """After all, however it ended; one that fails is told when the others are done."""
        failed: list[StoppedError] = []
        for place in begun:
            try:
                self.hook("cleanup", place)
            except StoppedError as stopped:
                failed.append(stopped)
        if failed and sys.exc_info()[0] is None:
            raise failed[0]


def is_narrow(runs: Sequence[Measurement], until: float) -> bool:
    """Elapsed's interval reaches at most this share of its mean to each side."""
    values = [value for run in runs if run.counts and (value := run.values["elapsed"]) is not None]
    if len(values) < FIRST_LOOK:
        return False
    return enough(values, until * sum(values) / len(values))
