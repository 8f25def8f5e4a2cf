"""Collected studies: merge, statistics, figures, report; `load(study)` for notebooks.

The rooms, each above what imports it: `base` and `stats` know no study; `store` is the database's
schema; `sources` reads the files of users and schedulers; `collect` imports them into the database
and matches jobs to runs; `job` is one job without a study, `cluster` all jobs of a cluster;
`summary` computes means, overheads and slopes; `findings` warns about the numbers; `history`
compares sessions; `figures` draws; `report` makes page, tables and exports; `papers` compares with
four papers. `api` is `load`.

After collect only the study's database and Parquet files are read, so that a report can be made
anywhere. What is unknown is None with a reason, never 0. No room submits a job or measures
anything: that is for `steelyard.wrappers`, which the analysis never imports, and for the plugins.
"""

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
