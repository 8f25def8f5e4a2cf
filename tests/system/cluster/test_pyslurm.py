"""PySlurm yields the same jobs and fields as Sacct, compared with ==. It needs pyslurm of this
Slurm's release, 25.11 or later:

    SLURM_INCLUDE_DIR=… SLURM_LIB_DIR=… build/venv/bin/pip install 'pyslurm==25.11.*'

STEELYARD_PYSLURM_JOBS: ids of jobs, of the cluster that SLURM_CONF names, to compare; without it a
throwaway cluster has some run.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.sources import pyslurm_accounting
from steelyard.analysis.sources.accounting import AccountingRow, StepRow
from steelyard.analysis.sources.pyslurm_accounting import TOLD, PySlurm
from steelyard.analysis.sources.sacct import FIELDS, Sacct

TOLD_AT = [FIELDS.index(name) for name in TOLD]


@pytest.fixture
def jobs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return ids to query; skip, with the missing requirement, without a matching pyslurm."""
    try:
        pyslurm_accounting.load_library()
    except MissingError as error:
        pytest.skip(str(error))
    named = os.environ.get("STEELYARD_PYSLURM_JOBS")
    if named:
        return named.split(",")
    lab = request.getfixturevalue("lab")
    for name, value in lab.cluster.environment().items():
        monkeypatch.setenv(name, value)
    found = [
        lab.sbatch("--tag=a=b", script="srun true; exit 3"),
        lab.sbatch("--array=0-2", script="[ $SLURM_ARRAY_TASK_ID = 1 ] && kill -9 $$; true"),
        lab.sbatch(script="#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n1\ntrue"),
        lab.sbatch("-N2", "-C", "physical", script="srun true"),
    ]
    for job in found:
        lab.sacct(job, "State")
    return found


def told(rows: Iterable[AccountingRow | StepRow]) -> dict[str, list[str]]:
    """Return the fields that both have of jobs, by raw id and submission."""
    found = {}
    for row in rows:
        if isinstance(row, AccountingRow):
            cells = [row.fields[at] for at in TOLD_AT]
            found[f"{cells[TOLD.index('JobIDRaw')]} {cells[TOLD.index('Submit')]}"] = cells
    return found


def test_the_library_tells_what_sacct_tells(jobs: list[str]) -> None:
    expected = told(Sacct().rows(jobs))
    assert told(PySlurm().rows(jobs)) == expected
    assert len(expected) >= len(jobs)
