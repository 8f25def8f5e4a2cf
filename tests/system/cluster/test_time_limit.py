"""The last file on purpose: the job that runs into its time limit started with the session."""

from __future__ import annotations

from tests.throwaway_lab import Lab


def test_a_job_that_ran_into_its_time_limit_has_its_record(lab: Lab, slow_job: str) -> None:
    # Not scontrol: by now slurmctld may have forgotten the job (MinJobAge).
    assert lab.sacct(slow_job, "State", limit_s=130) == [["TIMEOUT"]]
    (record,) = lab.records(slow_job, 1)
    assert 55 <= record["elapsed_s"] < 150
