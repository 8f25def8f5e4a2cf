"""Fixtures that several rooms share; each is written where its room is."""

from __future__ import annotations

from .leftovers import marked, nothing_is_left_running  # noqa: F401 - fixtures
from .submit.paper_slurm import finish_run, slurm, submitted, write_study  # noqa: F401 - fixtures
from .summary.databases import (  # noqa: F401 - fixtures
    demo_folder,
    demo_summary,
    energy_folder,
    synthetic,
    thesis_folder,
)
