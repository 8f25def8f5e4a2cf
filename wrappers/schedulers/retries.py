"""Retries a scheduler's command whose server does not answer for a limited time, with a message."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TypeVar

from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.schedulers.base import PATIENCE_S

Answer = TypeVar("Answer")

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1, 16


class LostError(MissingError):
    """The server did not answer; the same command may work a moment later."""


class CommandError(MissingError):
    """A scheduler's command failed; `message` is the last line of its error output."""

    def __init__(self, program: str, message: str) -> None:
        super().__init__(f"{program}: {message}")
        self.message = message


def submit_once(submit: Callable[[], str], find: Callable[[], str | None]) -> str:
    """Retry a submission and return the job id. After a lost answer `find` looks for the job first,
    so that it is never submitted twice."""
    is_first = True

    def attempt() -> str:
        nonlocal is_first
        found = None if is_first else find()
        is_first = False
        return found or submit()

    return retry(attempt)


def retry(action: Callable[[], Answer], limit_s: float | None = None) -> Answer:
    """Repeat `action()` until it is answered, for at most `limit_s`; each retry is reported on
    stderr."""
    limit_s = PATIENCE_S if limit_s is None else limit_s
    deadline = time.monotonic() + limit_s
    pause_s = FIRST_PAUSE_S
    while True:
        try:
            return action()
        except LostError as error:
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                raise MissingError(
                    f"{error}; given up after {limit_s:.0f} s. "
                    "What was submitted is recorded: the same command goes on from there"
                ) from error
            print(f"steelyard: {error}; trying again, {remaining_s:.0f} s left", file=sys.stderr)
            time.sleep(min(pause_s, remaining_s))
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
