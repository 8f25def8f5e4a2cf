"""A folder of records that does not answer: the hook takes and ends the job."""

from __future__ import annotations

import pytest
from tests.hung_folder import Mounted, needed, waiting_samplers
from tests.system.openpbs.conftest import Mom, job


@pytest.mark.parametrize("hangs_at", ["begin", "end"])
def test_a_folder_that_hangs_refuses_no_job_and_holds_none(mom: Mom, hangs_at: str) -> None:
    needed()
    mounted = Mounted(mom.home / "behind", mom.records)
    try:
        if hangs_at == "begin":
            mounted.hang()
        ours = job(id="43.vm")
        assert mom.run({"event": "EXECJOB_BEGIN", "job": ours})["accepted"]
        if hangs_at == "end":
            mounted.hang()
        assert mom.run({"event": "EXECJOB_EPILOGUE", "job": {**ours, "Exit_status": "0"}})[
            "accepted"
        ]
    finally:
        mounted.end()


def test_beside_too_many_samplers_that_wait_a_job_runs_unmeasured(mom: Mom) -> None:
    with waiting_samplers(mom.home / "run", 64):
        ours = job(id="44.vm")
        assert mom.run({"event": "EXECJOB_BEGIN", "job": ours})["accepted"]
        assert (
            "not sampled: 64 samplers of this node wait already"
            in (mom.home / "run/vm.log").read_text()
        )
        ended = {"event": "EXECJOB_EPILOGUE", "job": {**ours, "Exit_status": "0"}}
        assert mom.run(ended)["accepted"]
