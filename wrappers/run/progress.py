"""Progress on a terminal: a line per command, with the estimate so far.

It is drawn between runs, and every second in a run that takes longer than FIRST_S: each update
costs part of what is measured (0.6 ms of CPU; with twelve commands 2.6 ms)."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from steelyard.wrappers.run import comparisons
from steelyard.wrappers.run.measurement import summarize_metric
from steelyard.wrappers.run.measurement_rounds import Course
from steelyard.wrappers.run.run_plan import Plan

FIRST_S, TICK_S = 3.0, 1.0
MOST_LINES = 12
NAME_WIDTH = 28


class Silent:
    """Shows nothing: stderr is no terminal, or there is only one run."""

    def update(self, course: Course) -> None:
        """Update the display after a run."""

    @contextmanager
    def show_running(self, index: int, what: str) -> Iterator[None]:
        """Show that a command runs; `what` is, for example, `run 3`."""
        yield

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Hide the display while a command's output is shown."""
        yield


class Bars(Silent):
    """A progress bar for each command."""

    def __init__(self, names: Sequence[str], plan: Plan) -> None:
        from rich import progress
        from rich.console import Console
        from rich.table import Column

        self.confidence = plan.confidence
        column = Column(max_width=NAME_WIDTH, no_wrap=True)
        self.bars = progress.Progress(
            progress.TextColumn("{task.description}", table_column=column),
            progress.BarColumn(16),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[so_far]}"),
            progress.TimeElapsedColumn(),
            console=Console(stderr=True),
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        total = plan.repeat if plan.until is None else None
        for name in names[:MOST_LINES]:
            self.bars.add_task(escape_name(name), total=total, so_far="")

    def update(self, course: Course) -> None:
        """Update the bars with the runs so far."""
        for index, task in enumerate(self.bars.task_ids):
            done = len(course.runs[index])
            self.bars.update(
                task, completed=done, so_far=format_estimate(course, index, self.confidence)
            )
        self.bars.refresh()

    @contextmanager
    def show_running(self, index: int, what: str) -> Iterator[None]:
        """Show the time of a long run while it lasts."""
        over = threading.Event()
        clock = threading.Thread(target=self.show_run_time, args=(over, index, what), daemon=True)
        clock.start()
        try:
            yield
        finally:
            over.set()
            clock.join()

    def show_run_time(self, over: threading.Event, index: int, what: str) -> None:
        """Update the time of a long run every TICK_S until `over` is set."""
        begin, wait_s = time.monotonic(), FIRST_S
        task = self.bars.task_ids[min(index, len(self.bars.task_ids) - 1)]
        before = self.bars.tasks[self.bars.task_ids.index(task)].fields["so_far"]
        while not over.wait(wait_s):
            took = f"{what}: {time.monotonic() - begin:.0f} s"
            self.bars.update(task, so_far=f"{before}  {took}".strip())
            self.bars.refresh()
            wait_s = TICK_S
        if wait_s == TICK_S:
            self.bars.update(task, so_far=before)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Remove the bars from the terminal until the body ends."""
        self.bars.stop()
        try:
            yield
        finally:
            self.bars.start()


@contextmanager
def show_progress(names: Sequence[str], plan: Plan) -> Iterator[Silent]:
    """Show the progress on a terminal until the body ends."""
    if not sys.stderr.isatty() or (len(names) == plan.repeat == 1 and plan.until is None):
        yield Silent()
        return
    found = Bars(names, plan)
    with found.bars:
        found.bars.refresh()
        yield found


def escape_name(text: str) -> str:
    """Shorten a command's name and escape rich's markup."""
    from rich.markup import escape

    return escape(text if len(text) <= NAME_WIDTH else text[: NAME_WIDTH - 1] + "…")


def format_estimate(course: Course, index: int, confidence: float) -> str:
    """Return, for example, `12.3 ms ± 1.4 %`; empty without a mean."""
    good = [run for run in course.runs[index] if run.counts]
    found = summarize_metric(comparisons.METRIC, "s", good, confidence) if good else None
    if found is None or not found.mean:
        return ""
    half = None if found.high is None or found.low is None else (found.high - found.low) / 2
    width = "" if half is None else f" ± {100 * half / found.mean:.2g} %"
    return f"{comparisons.format_seconds(found.mean)}{width}"
