"""Shows a study's progress until all its runs have ended, or only runs remain that never start."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.submit import status
from steelyard.wrappers.submit.status import Progress, format_progress

Show = Callable[[Progress], None]


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
        from steelyard.wrappers.submit import status_screen

        with status_screen.open_screen() as show:
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
            return status.read_progress(study_dir, strict=True)
        except MissingError as error:
            if time.monotonic() > deadline:
                raise
            print(f"\nsteelyard status: {error}; trying again", file=sys.stderr)
            time.sleep(5)
