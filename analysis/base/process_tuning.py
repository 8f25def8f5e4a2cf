"""What a command that reads, computes and ends sets before the heavy libraries are loaded."""

from __future__ import annotations

import gc
import logging
import os

OBJECTS = (
    100_000  # made between two looks for garbage; Python's own 700 cost a report 6 % of its time
)


def collect_garbage_rarely() -> None:
    """For what reads much, makes few cycles and ends soon."""
    gc.set_threshold(OBJECTS, 10, 10)


def reduce_startup_cost() -> None:
    """One thread for linear algebra, rare garbage collections, no hints; before numpy is imported.

    Our matrices are so small that OpenBLAS' threads mostly wait, and they wait by spinning: on a
    busy machine that took a third of a report's CPU time. With one, sums are also added in the same
    order everywhere. Not for commands that start users' programs: they would inherit it.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    collect_garbage_rarely()
    # Where HOME cannot be written it uses a temporary folder, which it says at length.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
