"""Tests read the output of qstat for jobs with unusual user text."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.analysis.job.job_lookup import look_up
from steelyard.analysis.sources.pbs import accounting_logs, pbs_commands
from steelyard.analysis.sources.pbs.accounting import Pbs

DATA = Path(__file__).parents[3] / "data"

FUNCTION = """Job Id: 75.srv
    exec_host = n1/0
    Variable_List = PBS_O_HOME=/home/u1,BASH_FUNC_show%%=() {  cat <<EOF
    Exit_status = 0
    exec_host = evil/0
EOF
}
    run_count = 1
    Exit_status = 3
    Submit_arguments = -V a

Job Id: 76.srv
    Exit_status = 5
"""
BROKEN = """<?xml version="1.0"?>
<Data><Job><Job_Id>76.srv</Job_Id><Job_Name>ok</Job_Name></Job>
<Job><Job_Id>77.srv</Job_Id><Job_Name>re\x1b[31md&#27;&#x1B;&#65;</Job_Name></Job></Data>
"""


def test_lines_of_a_variable_are_no_attributes() -> None:
    jobs = pbs_commands.parse_text(FUNCTION)
    assert jobs["75.srv"]["Exit_status"] == "3"
    assert jobs["75.srv"]["exec_host"] == "n1/0"
    assert jobs["76.srv"] == {"Exit_status": "5"}


def test_a_control_character_in_one_jobs_name_hides_no_job() -> None:
    jobs = pbs_commands.parse_xml(BROKEN)
    assert jobs["76.srv"] == {"Job_Name": "ok"}
    assert jobs["77.srv"] == {"Job_Name": "re\ufffd[31md\ufffd\ufffdA"}


@pytest.fixture
def only_qstat(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server's logs that an ordinary user cannot read; qstat answers for the whole array."""
    told = pbs_commands.parse_text((DATA / "openpbs/qstat-xtf-array-deleted.txt").read_text())
    monkeypatch.setattr(accounting_logs, "find_log_folder", lambda: None)
    monkeypatch.setattr(pbs_commands, "is_installed", lambda: True)
    monkeypatch.setattr(pbs_commands, "detect_dialect", lambda: "openpbs")
    monkeypatch.setattr(
        pbs_commands, "query_jobs_once", lambda ids, *_: told if ids == ["73[]"] else {}
    )


@pytest.mark.usefixtures("only_qstat")
def test_a_task_of_an_array_is_that_task_alone(tmp_path: Path) -> None:
    assert [row.job_id for row in Pbs().rows(["73[2]"])] == ["73[2].opbs"]
    assert [row.job_id for row in Pbs().rows(["73[0]", "73[2]"])] == ["73[0].opbs", "73[2].opbs"]
    assert len(list(Pbs().rows(["73[]"]))) == 6
    view = look_up("73[2]", [tmp_path], Pbs())
    assert view.row is not None
    assert (view.row.job_id, view.row.state) == ("73[2].opbs", "cancelled")
