"""Collected studies: merge, statistics, figures, report; `load(study)` for notebooks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steelyard.analysis.api import Study

__all__ = ["load"]


def load(study: str | Path, include_invalid: bool = False) -> Study:
    """A collected study by its folder, NAME or NAME.toml: see steelyard.analysis.api.Study."""
    # Here and not above: every import of a part would pay for DuckDB and scipy.
    from steelyard.analysis.api import load as load_study

    return load_study(study, include_invalid)
