"""Shows a study's progress until all its runs have ended, or none of the rest ever will."""

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
    """The whole screen of a terminal, a line for each change elsewhere; the last state."""
    with open_display(quiet) as show:
        while True:
            progress = read_progress_patiently(study_dir)
            show(progress)
            if progress.ended:
                return progress
            time.sleep(interval_s)


@contextmanager
def open_display(quiet: bool) -> Iterator[Show]:
    """Where to; after ^C on a terminal the last state stays behind as a line."""
    if quiet:
        yield lambda progress: None
    elif sys.stdout.isatty():
        from steelyard.wrappers.submit import status_screen

        with status_screen.open_screen() as show:
            yield show
    else:
        yield Lines()


class Lines:
    """A line for each change."""

    def __init__(self) -> None:
        self.before = ""

    def __call__(self, progress: Progress) -> None:
        if change_key(progress) != self.before:
            print(format_progress(progress), flush=True)
        self.before = change_key(progress)


def change_key(progress: Progress) -> str:
    """The counts whose change causes a new line."""
    return f"{progress.done} {progress.running} {progress.failed} {progress.cancelled}"


def read_progress_patiently(study_dir: Path) -> Progress:
    """A snapshot; a scheduler that does not answer is asked again for two minutes."""
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
