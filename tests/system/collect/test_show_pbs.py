"""steelyard show of jobs of Torque and OpenPBS, from the logs that their servers wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.collect import study as HELP

from steelyard.analysis.sources import accounting
from steelyard.wrappers.commands import cli, show

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the folder of records, and next to it the accounting of the recorded OpenPBS."""
    logs = tmp_path / "accounting"
    logs.mkdir()
    log = DATA / "openpbs" / "accounting-1-classic-pelog.log"
    (logs / "20261121").write_bytes(log.read_bytes())
    monkeypatch.setenv("STEELYARD_PBS_ACCOUNTING", str(logs))
    monkeypatch.setattr("steelyard.analysis.sources.sacct.Sacct.is_installed", lambda: False)
    monkeypatch.setattr("steelyard.analysis.sources.pbs.accounting.Pbs.is_installed", lambda: True)
    monkeypatch.setattr("steelyard.analysis.sources.pbs.pbs_commands.is_installed", lambda: False)
    monkeypatch.setenv("STEELYARD_RECORD_DIR", str(tmp_path / "records"))
    (tmp_path / "records").mkdir()
    return tmp_path / "records"


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert cli.main(["show", *words]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("typed", ["8[2]", "8[2].vm"])
def test_a_task_by_both_of_its_names(
    records: Path, typed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = HELP.write_record(
        records / "8[2].vm", "vm", 1795240301, "8[2].vm", energy={"energy_j": 12.5, "zones": []},
        job={"scheduler": "pbs", "job_id": "8[2].vm", "exclusive": True}, missing={},
    )  # fmt: skip
    assert path.is_file()
    text = shown(capsys, typed)
    assert "job 8[2].vm: arr_slot, of labpbs on vm" in text
    assert "\n  failed (the job ended with exit code 7)\n" in text
    assert "12.5 J" in text
    document = json.loads(shown(capsys, typed, "--json"))
    assert document["totals"]["energy_j"] == 12.5
    assert document["job"]["raw_job_id"] == "8[2].vm"
    assert document["job"]["array_job_id"] == "8[].vm"


def test_several_are_a_table_and_an_array_its_tasks(
    records: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(capsys, "0.vm", "8").splitlines()
    ids = [line.split()[0] for line in lines if ".vm" in line]
    assert ids == ["0.vm", "8[1].vm", "8[2].vm", "8[3].vm", "8[4].vm"]
    (first,) = (line.split() for line in lines if line.startswith(" 0.vm"))
    # 2 s of CPU on one for 6 s; a limit of 2 minutes.
    assert " ".join(first[1:]) == "ok_job completed 1 1 6 s 5.0 % 33.3 % – – – –"
    assert cli.main(["show", "0.vm", "4711.vm", "--json"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert [job["job_id"] for job in document["jobs"]] == ["0.vm"]
    assert document["jobs"][0]["efficiency"]["cpu"]["share"] == pytest.approx(2 / 6)
    assert "job 4711.vm is not known" in document["unknown"][0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "which job?"),
        (["--since", "7d"], "--since goes with --mine"),
        (["--mine", "8"], "leave out the job ids"),
        (["8", "--tag", "a=b"], "--tag goes with --mine"),
        (["8", "--state", "failed"], "--state goes with --mine"),
        (["--mine", "--since", "7 days"], "expected a time such as 90m, 12h, 7d or 2w"),
        (["8", "x"], "'x' is no job id"),
    ],
)
def test_what_does_not_go_together(
    records: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["show", *words]) == 2
    assert said in capsys.readouterr().err


def test_mine(
    records: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "labpbs")
    monkeypatch.setattr("time.time", lambda: 1795240400.0)
    text = shown(capsys, "--mine", "--since", "2d")
    assert "ok_job" in text and "8[4].vm" in text
    monkeypatch.setattr("getpass.getuser", lambda: "nobody")
    assert shown(capsys, "--mine") == "no jobs in the last 1d\n"


def test_mine_with_a_tag_or_a_state(
    records: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "labpbs")
    monkeypatch.setattr("time.time", lambda: 1795240400.0)
    for job, tags in (
        ("8[2].vm", {"study": "disks", "block": "1"}),
        ("8[3].vm", {"study": "disks"}),
    ):
        HELP.write_record(
            records / job, "vm", 1795240301, job, tags=tags, missing={},
            job={"scheduler": "pbs", "job_id": job},
        )  # fmt: skip

    def ids(*words: str) -> list[str]:
        text = shown(capsys, "--mine", "--since", "2d", *words)
        return [line.split()[0] for line in text.splitlines() if ".vm" in line]

    every = ids()
    assert ids("--tag", "study=disks") == ["8[2].vm", "8[3].vm"]
    assert ids("--tag", "study", "--tag", "block=1") == ["8[2].vm"]
    assert ids("--tag", "study=disk") == []
    assert "no jobs like that in the last 2d" in shown(
        capsys, "--mine", "--since", "2d", "--tag", "none"
    )
    failed, completed = ids("--state", "failed"), ids("--state", "completed")
    assert "0.vm" in completed and "8[2].vm" in failed
    assert set(failed) | set(completed) <= set(every) and not set(failed) & set(completed)
    assert "study=disks, block=1" in shown(capsys, "--mine", "--since", "2d")


def test_its_states_are_those_of_a_job() -> None:
    assert set(show.STATES) == accounting.FINAL_STATES | accounting.WAITING_STATES | {"lost"}


@pytest.mark.parametrize("typed", ["8", "8[]", "8[].vm", "8.vm"])
def test_a_whole_array_is_a_table_of_its_tasks(
    records: Path, typed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(capsys, typed)
    assert all(f"8[{task}].vm" in text for task in (1, 2, 3, 4))
    assert "all 4" in text and "3 completed, 1 failed" in text


def test_records_alone_will_do(
    records: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STEELYARD_PBS_ACCOUNTING", "/nowhere")
    HELP.write_record(records / "9000[3].vm", "n1", 1795240301, "9000[3].vm")
    text = shown(capsys, "9000[3]")
    assert "job 9000[3], from its records alone" in text and "n1" in text
    HELP.write_record(records / "9000[4].vm", "n1", 1795240301, "9000[4].vm")
    assert cli.main(["show", "9000"]) == 2
    assert "9000[3].vm, 9000[4].vm" in capsys.readouterr().err


def test_an_unknown_job_is_told_what_to_do(
    records: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["show", "4711.vm"]) == 3
    assert "PBS_DEFAULT" in capsys.readouterr().err


# Of OpenPBS' master of April 2026: the server names no start of a job that a node's hook refused.
REFUSED = """\
11/22/2026 23:38:05;Q;38.oma-srv;user=pbsuser group=pbsuser project=_pbs_project_default jobname=STDIN queue=workq ctime=1795390685 qtime=1795390685 etime=1795390685 Resource_List.ncpus=1 Resource_List.nodect=1 Resource_List.place=excl Resource_List.select=1:host=oma-n2:ncpus=1 Resource_List.steelyard=netem=rate%3D100mbit
11/22/2026 23:38:07;A;38.oma-srv;hook rejected request, requiring job to be deleted
"""


def test_a_job_that_a_node_refused_has_the_nodes_words(
    records: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (records.parent / "accounting/20261122").write_text(REFUSED)
    words = "refused: --netem=rate=100mbit: netem: switched off on this machine"
    for start, said in ((1795390600, "of an earlier job of this id"), (1795390686, words)):
        HELP.write_record(
            records / "38.oma-srv", "oma-n2", start, "38.oma-srv",
            missing={"network_conditions": said}, network_conditions=None,
            job={"scheduler": "pbs", "job_id": "38.oma-srv", "exclusive": True},
        )  # fmt: skip
    text = shown(capsys, "38.oma-srv")
    assert f"oma-n2: {words}" in text
    assert "note: 1 record of other starts of this id left out" in text
