"""Shows a study's progress until all its runs have ended, or only runs remain that never start: on
the full screen of a terminal, or a line per change."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from steelyard.wrappers.base.console import plain
from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.submit.status import (
    Counts,
    Failure,
    Progress,
    format_progress,
    format_reasons,
    format_stuck_runs,
    format_time_left,
    read_progress,
)

Show = Callable[[Progress], None]

STATES = ("done", "running", "waiting", "failed", "cancelled", "planned")
ALWAYS = ("done", "running", "waiting", "failed")
COLOURS = {"done": "green", "running": "cyan", "failed": "red", "cancelled": "yellow"}
MOST_FAILURES = 5
HEAD_LINES = 9  # lines besides conditions and failures, on a narrow terminal
LEAST_CONDITIONS = 7  # lines of conditions that come before a second failure


def watch(study_dir: Path, interval_s: float, quiet: bool = False) -> Progress:
    """Show progress until the study has ended, and return the last state: on a terminal the full
    screen, elsewhere a line per change."""
    with open_display(quiet) as show:
        while True:
            progress = read_progress_patiently(study_dir)
            show(progress)
            if progress.ended:
                return progress
            time.sleep(interval_s)


@contextmanager
def open_display(quiet: bool) -> Iterator[Show]:
    """Yield a function that shows progress; after Ctrl-C on a terminal the last state remains as a
    line."""
    if quiet:
        yield lambda progress: None
    elif sys.stdout.isatty():
        with open_screen() as show:
            yield show
    else:
        yield Lines()


class Lines:
    """Prints a line for each change."""

    def __init__(self) -> None:
        self.before = ""

    def __call__(self, progress: Progress) -> None:
        if change_key(progress) != self.before:
            print(format_progress(progress), flush=True)
        self.before = change_key(progress)


def change_key(progress: Progress) -> str:
    """Return the counts whose change causes a new line."""
    return f"{progress.done} {progress.running} {progress.failed} {progress.cancelled}"


def read_progress_patiently(study_dir: Path) -> Progress:
    """Return the progress; a scheduler that does not answer is queried again for PATIENCE_S."""
    from steelyard.wrappers.schedulers.base import PATIENCE_S

    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return read_progress(study_dir, strict=True)
        except MissingError as error:
            if time.monotonic() > deadline:
                raise
            print(f"\nsteelyard status: {error}; trying again", file=sys.stderr)
            time.sleep(5)


@contextmanager
def open_screen() -> Iterator[Show]:
    """Yield a function that shows a state. At the end the terminal's earlier content returns,
    followed by a line with the last state."""
    console = Console()
    last: list[Progress] = []
    try:
        with Live(console=console, screen=not console.is_dumb_terminal, auto_refresh=False) as live:

            def show(progress: Progress) -> None:
                last[:] = [progress]
                live.update(render_screen(progress, console.size.height), refresh=True)

            yield show
    finally:
        if last:
            print(format_progress(last[0]))


def render_screen(progress: Progress, height: int) -> RenderableType:
    """Render what fits into `height` lines."""
    most = (height - HEAD_LINES - LEAST_CONDITIONS) // 3
    failures = select_latest(progress.failed_runs, min(max(most, 1), MOST_FAILURES))
    room = height - HEAD_LINES - 3 * len(failures)
    parts: list[RenderableType] = [
        format_head(progress),
        format_bar(progress),
        format_pace(progress),
        Text(),
    ]
    parts.append(format_conditions(progress.conditions, max(room, 3)))
    if stuck := format_stuck_runs(progress):
        parts.append(Text(plain(stuck), "bold red"))
    elif progress.waiting_reasons:
        reasons = format_reasons(progress.waiting_reasons)
        parts.append(Text(plain(f"waiting for: {reasons}"), "dim"))
    parts += [line for one in failures for line in format_failure(one, progress.study_dir)]
    return Group(*parts)


def format_head(progress: Progress) -> Text:
    """Return, for example, `demo: 12 of 40 done, 4 running`, without zeros."""
    text = Text(plain(progress.study), "bold")
    text.append(f"  {progress.done} of {progress.total} done", "green")
    for name in STATES[1:]:
        number = getattr(progress, name)
        if number:
            state = "not submitted" if name == "planned" else name
            text.append(f"  {number} {state}", COLOURS.get(name, ""))
    return text


def format_bar(progress: Progress) -> Table:
    """Return a bar with the share of ended runs, on its own line."""
    over = progress.done + progress.failed + progress.cancelled
    grid = Table.grid(expand=True)
    grid.add_row(ProgressBar(total=max(progress.total, 1), completed=over))
    return grid


def format_pace(progress: Progress) -> Text:
    """Return the rate of runs and the time left."""
    rate = progress.runs_per_hour
    parts = (
        [] if rate is None else [f"{rate:.3g} {'run' if f'{rate:.3g}' == '1' else 'runs'} an hour"]
    )
    parts.append("all have ended" if progress.ended else format_time_left(progress))
    return Text(", ".join([*parts, "^C ends this, not the study"]), "dim")


def format_conditions(found: Sequence[Counts], room: int) -> Table:
    """Return a line per condition; if they do not fit, completed conditions are removed first."""
    table = Table(box=None, pad_edge=False, expand=False)
    several = len({one.variant for one in found}) > 1
    table.add_column("condition", overflow="ellipsis", no_wrap=True)
    states = [name for name in STATES if name in ALWAYS or any(getattr(c, name) for c in found)]
    for name in states:
        heading = "not sub." if name == "planned" else name
        table.add_column(heading, justify="right", no_wrap=True, min_width=len(heading))
    chosen = list(found)
    while len(chosen) > room - 1 and any(one.done == one.total for one in chosen):
        chosen.remove(next(one for one in chosen if one.done == one.total))
    for one in chosen[: room - 1]:
        name = f"{one.variant} · {one.condition_label}" if several else one.condition_label
        table.add_row(plain(name), *(format_count(one, state) for state in states))
    remaining = len(found) - len(chosen[: room - 1])
    if remaining:
        table.add_row(Text(f"… and {remaining} more", "dim"))
    return table


def format_count(counts: Counts, name: str) -> Text:
    """Return a number; 0 is dimmed."""
    number = getattr(counts, name)
    return Text(str(number), COLOURS.get(name, "") if number else "dim")


def select_latest(failures: Sequence[Failure], most: int) -> list[Failure]:
    """Return the runs that ended last."""
    return sorted(failures, key=lambda one: one.end_unix_s or 0.0)[-most:]


def format_failure(one: Failure, study_dir: str) -> Iterator[Text]:
    """Yield the failure, its reason, and its folder."""
    yield Text(plain(f"{one.state}: {one.run_id} ({one.condition_label})"), "red", no_wrap=True)
    if one.reason:
        yield Text(plain(f"  {one.reason}"), no_wrap=True, overflow="ellipsis")
    if one.folder:
        path = Path(one.folder)
        shown_path = path.relative_to(study_dir) if path.is_relative_to(study_dir) else path
        yield Text(plain(f"  {shown_path}"), "dim", no_wrap=True)
