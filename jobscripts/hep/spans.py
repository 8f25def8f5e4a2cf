"""Which times of a run were an iteration, and until its first client ended: docs/formats.md part 6.

What the nodes used in them is read from the samples, which have the wall clock's times.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def note(iteration: int, answers: Sequence[Mapping[str, Any]]) -> None:
    """Two lines of the attempt's spans.CLIENT; times of answers are CLOCK_MONOTONIC's. None in a
    run that has several clients, each with iterations of its own."""
    if os.environ.get("SY_CLIENTS") != "1":
        return  # each of several clients has times of its own
    offset_s = time.time() - time.monotonic()
    begin_s = min(answer["begin_s"] for answer in answers)
    ends_s = [answer["end_s"] for answer in answers]
    lines = [
        {
            "span": span,
            "iteration": iteration,
            "begin_unix_s": begin_s + offset_s,
            "end_unix_s": end_s + offset_s,
        }
        for span, end_s in (("iteration", max(ends_s)), ("until_first", min(ends_s)))
    ]
    path = Path(os.environ["SY_ATTEMPT_DIR"]) / f"spans.{os.environ['SY_CLIENT']}"
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
