"""What qstat says, where a user has put something odd into his job."""

from __future__ import annotations

from steelyard.analysis.sources.pbs import qstat

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
    jobs = qstat.parse_text(FUNCTION)
    assert jobs["75.srv"]["Exit_status"] == "3"
    assert jobs["75.srv"]["exec_host"] == "n1/0"
    assert jobs["76.srv"] == {"Exit_status": "5"}


def test_a_control_character_in_one_jobs_name_hides_no_job() -> None:
    jobs = qstat.parse_xml(BROKEN)
    assert jobs["76.srv"] == {"Job_Name": "ok"}
    assert jobs["77.srv"] == {"Job_Name": "re\ufffd[31md\ufffd\ufffdA"}
