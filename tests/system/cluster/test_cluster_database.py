"""`steelyard collect --cluster` of a real Slurm: its jobs are sacct's, each once."""

from __future__ import annotations

import json
from typing import Any

import duckdb
from tests.throwaway_lab import Lab


def collected(lab: Lab) -> dict[str, Any]:
    folder = str(lab.work / "db")
    text = lab.steelyard("collect", "--cluster", folder, "--since", "1d", "--json")
    document: dict[str, Any] = json.loads(text)
    return document


def test_every_job_of_sacct_is_there_once(lab: Lab) -> None:
    """Those of a controller that has just begun, too: slurmdbd knows no eligible time of them."""
    named = lab.srun("-w", "n1", "-J", "two\nlines|and")
    tagged = lab.sbatch("-w", "n1", "--tag", "application=relax", script="true")
    ids = [named, tagged]
    for job in ids:
        lab.sacct(job)
        lab.records(job, 1)
    first = collected(lab)
    assert first["new"] == first["jobs"] >= 2
    again = collected(lab)
    assert again["jobs"] - first["jobs"] == again["new"]
    with duckdb.connect(str(lab.work / "db" / "cluster.duckdb"), read_only=True) as base:
        rows = base.execute(
            "SELECT job_id, is_over, application, cpu_s FROM jobs "
            "WHERE job_id IN (SELECT unnest(?)) ORDER BY job_id::INT",
            [ids],
        ).fetchall()
    assert [row[0] for row in rows] == sorted(ids, key=int)
    assert all(row[1] and row[3] > 0 for row in rows)
    assert rows[1][2] == "relax"
