"""A folder of records that does not answer: the hook takes and ends the job."""

from __future__ import annotations

import json

import pytest
from tests.hung_folder import Mounted, needed, waiting_samplers
from tests.system.openpbs.conftest import Mom, job
from tests.waiting import wait_for


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
        mounted.answer()
        wait_for("it is recorded", lambda: texts(mounted) and all(map(is_ended, texts(mounted))))
        # A second one would state falsely that its begin is unknown.
        assert len(texts(mounted)) == 1
    finally:
        mounted.end()


def texts(mounted: Mounted) -> list[bytes]:
    """Of records; of one that is only begun perhaps empty."""
    return [path.read_bytes() for path in mounted.behind.rglob("vm.*.json")]


def is_ended(text: bytes) -> bool:
    return bool(text) and json.loads(text)["end_unix_s"] is not None


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
