"""Process settings of commands that read, compute and end; set before large libraries load."""

from __future__ import annotations

import gc
import logging
import os

OBJECTS = 100_000  # allocations between collections; Python's 700 took 6 % of a report's time


def collect_garbage_rarely() -> None:
    """Collect garbage rarely, in a process that reads much, makes few cycles and ends soon."""
    gc.set_threshold(OBJECTS, 10, 10)


def reduce_startup_cost() -> None:
    """Set one thread for linear algebra and rare garbage collections, before numpy is imported.

    The matrices are so small that OpenBLAS' threads mostly wait, and they wait by spinning: on a
    busy machine that took a third of a report's CPU time. With one thread, sums are also added in
    the same order everywhere. Commands that start users' programs must not call this: the programs
    would inherit it.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    collect_garbage_rarely()
    # If HOME is not writable, matplotlib uses a temporary folder and logs that at length.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
