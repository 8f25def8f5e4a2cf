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
    with shown(quiet) as show:
        while True:
            progress = patient_snapshot(study_dir)
            show(progress)
            if progress.ended:
                return progress
            time.sleep(interval_s)


@contextmanager
def shown(quiet: bool) -> Iterator[Show]:
    """Where to; after ^C on a terminal the last state stays behind as a line."""
    if quiet:
        yield lambda progress: None
    elif sys.stdout.isatty():
        from steelyard.wrappers.submit import status_screen

        with status_screen.full_screen() as show:
            yield show
    else:
        yield Lines()


class Lines:
    """A line for each change."""

    def __init__(self) -> None:
        self.before = ""

    def __call__(self, progress: Progress) -> None:
        if counts(progress) != self.before:
            print(format_progress(progress), flush=True)
        self.before = counts(progress)


def counts(progress: Progress) -> str:
    """What makes a state worth a new line."""
    return f"{progress.done} {progress.running} {progress.failed} {progress.cancelled}"


def patient_snapshot(study_dir: Path) -> Progress:
    """A snapshot; a scheduler that does not answer is asked again for two minutes."""
    from steelyard.wrappers.schedulers.base import PATIENCE_S

    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return status.snapshot(study_dir, strict=True)
        except MissingError as error:
            if time.monotonic() > deadline:
                raise
            print(f"\nsteelyard status: {error}; trying again", file=sys.stderr)
            time.sleep(5)
