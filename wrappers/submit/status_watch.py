"""Shows a study's progress until all its runs have ended."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from steelyard.wrappers.base import console
from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.schedulers.base import PATIENCE_S
from steelyard.wrappers.submit import status
from steelyard.wrappers.submit.status import Progress

BAR_WIDTH = 30


def line(progress: Progress) -> str:
    """`demo: 12 done, 4 running, 24 waiting, 0 failed of 40; about 1:20 left`."""
    words = [
        f"{progress.done} done",
        f"{progress.running} running",
        f"{progress.waiting} waiting",
        f"{progress.failed} failed",
    ]
    text = f"{progress.study}: {', '.join(words)} of {progress.total}"
    if not progress.ended:
        left = progress.time_left_s
        text += (
            "; time left unknown yet" if left is None else f"; {console.format_seconds(left)} left"
        )
    reasons = ", ".join(f"{n} {reason}" for reason, n in sorted(progress.waiting_reasons.items()))
    return text + (f" (waiting for: {reasons})" if reasons and not progress.running else "")


def bar(progress: Progress) -> str:
    """A bar as wide as the share of runs that have ended."""
    ended = BAR_WIDTH * (progress.done + progress.failed) // max(progress.total, 1)
    return "[" + "#" * ended + "-" * (BAR_WIDTH - ended) + "] "


def watch(study_dir: Path, interval_s: float, quiet: bool = False) -> Progress:
    """Redraw one line on a terminal, print each change elsewhere; the last state."""
    terminal = sys.stdout.isatty() and not quiet
    before = ""
    while True:
        progress = patient_snapshot(study_dir)
        if terminal:
            draw(bar(progress), line(progress))
        elif not quiet and counts(progress) != before:
            print(line(progress), flush=True)
        before = counts(progress)
        if progress.ended:
            break
        time.sleep(interval_s)
    if terminal:
        print()
    return progress


def counts(progress: Progress) -> str:
    """What makes a state worth a new line."""
    return f"{progress.done} {progress.running} {progress.failed}"


def draw(picture: str, words: str) -> None:
    """Over the line that is there: the words, cut at the terminal's width, behind the picture
    where both fit."""
    import shutil

    width = shutil.get_terminal_size().columns - 1
    text = picture + words
    sys.stdout.write("\r\x1b[K" + (text if len(text) <= width else words[:width]))
    sys.stdout.flush()


def patient_snapshot(study_dir: Path) -> Progress:
    """A snapshot; a scheduler that does not answer is asked again for two minutes."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return status.snapshot(study_dir, strict=True)
        except MissingError as error:
            if time.monotonic() > deadline:
                raise
            print(f"\nsteelyard status: {error}; trying again", file=sys.stderr)
            time.sleep(5)
