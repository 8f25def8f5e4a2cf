"""A cold cache is that of a guest: this machine's is everybody's."""

from __future__ import annotations

from tests.throwaway_lab import Lab


def test_a_cold_cache_is_made_once_and_noted(virtual_lab: Lab) -> None:
    job = virtual_lab.sbatch("-w", "v1", "--cache=cold", script="srun true; sleep 0.3")
    virtual_lab.wait_state(job, "COMPLETED")
    (record,) = virtual_lab.records(job, 1, complete=False)
    assert record["tags"]["cache"] == "cold"
    assert record["cache"]["requested"] == "cold"
    assert record["cache"]["done"]
    assert virtual_lab.comment(job)["tags"]["cache"] == "cold"
