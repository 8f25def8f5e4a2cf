"""The order in which commands are measured, the hooks around each run, and the end.

In a round every command runs once, in a new random order: drift of the machine affects all
alike."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from steelyard.analysis.stats.planning import FIRST_LOOK, can_stop
from steelyard.wrappers.base import errors
from steelyard.wrappers.run.measurement import Measurement
from steelyard.wrappers.run.run_plan import Command, Hooks, Plan

SEED = 1


@dataclass(frozen=True)
class Ending:
    """Why a session ended early."""

    text: str
    exit_code: int


@dataclass
class Course:
    """The runs of each command in their order, and the order of all runs."""

    runs: list[list[Measurement]]
    order: list[int] = field(default_factory=list)  # indices of commands in the order of execution
    ended: Ending | None = None
    enough: bool | None = None  # with `until`: every interval is narrow


# Measures the command with that index; arguments are the index, the run's number, and whether it is
# a warm-up.
Measure = Callable[[int, int, bool], Measurement]


class StoppedError(Exception):
    """Ends the remaining runs."""

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
    report_progress: Callable[[Course], None]  # after every run that counts
    course: Course = field(init=False)

    def __post_init__(self) -> None:
        self.course = Course([[] for _ in self.commands])

    def run(self) -> Course:
        """Execute the plan. Ctrl-C or a failure ends it; the runs until then are returned."""
        try:
            for group in self.list_groups():
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

    def list_groups(self) -> list[list[int]]:
        """Groups of command indices; the commands of a group take turns."""
        places = list(range(len(self.commands)))
        return [places] if self.plan.interleaved else [[index] for index in places]

    def run_group(self, group: Sequence[int], begun: list[int]) -> None:
        """Set up, warm up and measure one group."""
        for index in group:
            begun.append(index)
            self.run_hook("setup", index)
        for number in range(1, self.plan.warm_up + 1):
            for index in group:
                self.run_once(index, number, warm_up=True)
        begin = time.monotonic()
        for index in self.draw_turns(group, begin):
            measured = self.run_once(index, len(self.course.runs[index]) + 1, warm_up=False)
            self.course.order.append(index)
            self.course.runs[index].append(measured)
            self.report_progress(self.course)
            self.check_exit(index, measured, "")

    def draw_turns(self, group: Sequence[int], begin: float) -> Iterator[int]:
        """Yield the index of the next command until the group is done."""
        generator = random.Random(SEED)
        while not self.is_done(group, begin):
            round_ = list(group)
            generator.shuffle(round_)
            yield from round_

    def is_done(self, group: Sequence[int], begin: float) -> bool:
        """Return whether the group has enough runs: `repeat` of them, or with `until` a narrow
        interval or a limit reached."""
        plan, runs = self.plan, [self.course.runs[index] for index in group]
        count = min(map(len, runs))
        if plan.until is None or count < plan.repeat:
            return count >= plan.repeat
        narrow = all(is_narrow(one, plan.until) for one in runs)
        if not narrow and count < plan.max_repeat and time.monotonic() - begin < plan.max_time_s:
            return False
        self.course.enough = narrow and self.course.enough is not False
        return True

    def run_once(self, index: int, number: int, warm_up: bool) -> Measurement:
        """Execute one run between its hooks."""
        self.run_hook("prepare", index)
        measured = self.measure(index, number, warm_up)
        self.run_hook("conclude", index)
        if warm_up:
            self.check_exit(index, measured, "warm-up ")
        return measured

    def check_exit(self, index: int, measured: Measurement, what: str) -> None:
        """Raise StoppedError for a failed run unless failures are ignored."""
        if measured.failed and not self.plan.continue_on_failure:
            text = f"{what}run {measured.number} of {self.commands[index].text} failed"
            code = measured.shell_code if self.plan.pass_code else errors.RUNS_FAILED
            raise StoppedError(Ending(f"{text} ({measured.end})", code))

    def run_hook(self, name: str, index: int) -> None:
        """Execute a hook. Its stderr is shown only if it fails. Raises StoppedError if it fails."""
        text = getattr(self.hooks[index], name)
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
            stderr = done.stderr.decode(errors="replace").strip()
            last = f": {stderr.splitlines()[-1]}" if stderr else ""
            how = f"--{name} '{text}' failed (exit code {done.returncode}){last}"
            raise StoppedError(Ending(how, errors.RUNS_FAILED))

    def clean_up(self, begun: Sequence[int]) -> None:
        """Run the cleanup hooks of all commands, then raise the first failure among them."""
        failed: list[StoppedError] = []
        for index in begun:
            try:
                self.run_hook("cleanup", index)
            except StoppedError as stopped:
                failed.append(stopped)
        if failed and sys.exc_info()[0] is None:
            raise failed[0]


def is_narrow(runs: Sequence[Measurement], until: float) -> bool:
    """Return whether the half width of elapsed's interval is at most this share of the mean."""
    values = [value for run in runs if run.counts and (value := run.values["elapsed"]) is not None]
    if len(values) < FIRST_LOOK:
        return False
    return can_stop(values, until * sum(values) / len(values))
