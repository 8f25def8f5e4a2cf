"""Waits for events of other processes, for every tier."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

LIMIT_S = 90.0  # for events that take a second or two on an idle machine
POLL_S = 0.01


def wait_for(
    what: str,
    condition: Callable[[], Any],
    limit_s: float = LIMIT_S,
    poll_s: float = POLL_S,
    seen: Callable[[], Any] = str,
) -> Any:
    """Return the first true value of `condition`; raise AssertionError after limit_s.

    `seen` returns text on the current state for the message.
    """
    end = time.monotonic() + limit_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {limit_s:.0f} s: {what} {seen()}")
        time.sleep(poll_s)
