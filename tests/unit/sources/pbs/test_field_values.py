"""Values, qstat's answers and exit statuses as both servers wrote them (tests/data)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.sources.pbs import accounting_rows, field_values, pbs_commands

DATA = Path(__file__).parents[3] / "data"


@pytest.mark.parametrize(
    ("typed", "written", "means"),
    [
        ("123", "123.srv", True),
        ("123", "123[4].srv", True),
        ("123[]", "123[4].srv", True),
        ("123[4]", "123[4].srv.site.org", True),
        ("123[4].srv", "123[4].srv.site.org", True),
        ("123[4].srv", "123[4].srv2", False),
        ("123[4]", "123[5].srv", False),
        ("12", "123.srv", False),
        ("123.srv", "123.other", False),
    ],
)
def test_a_typed_id_means_a_written_one(typed: str, written: str, means: bool) -> None:
    a, b = field_values.split_job_id(typed), field_values.split_job_id(written)
    assert a is not None and b is not None and a.matches(b) is means


@pytest.mark.parametrize("text", ["", "x", "1_2", "1[2", "1[2].", "1.a b", "1[x].srv", "1;2", "١"])
def test_what_is_no_job_id(text: str) -> None:
    assert field_values.split_job_id(text) is None


def test_the_array_of_a_job() -> None:
    found = {
        text: field_values.split_job_id(text) for text in ("7[3].vm", "7[].vm", "7.vm", "7[0]")
    }
    arrays = {text: one.format_array_id() for text, one in found.items() if one is not None}
    assert arrays == {"7[3].vm": "7[].vm", "7[].vm": None, "7.vm": None, "7[0]": "7[]"}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("37", 37), ("00:02:00", 120), ("100:00:01", 360001), ("1:00:00:00", 86400), ("2:30", 150),
     ("1.5", 1.5), ("", None), (None, None), ("-1", None), ("1:2:3:4:5", None), ("nan", None)],
)  # fmt: skip
def test_durations(text: str | None, seconds: float | None) -> None:
    assert field_values.parse_duration_s(text) == seconds


@pytest.mark.parametrize(
    ("fields", "slots"),
    [
        ({"exec_host": "n1/25+n2/25", "Resource_List.nodes": "2:ppn=25",
          "total_execution_slots": "50"}, 50),
        ({"exec_host": "n1/25+n2/25", "Resource_List.nodes": "2:ppn=25"}, 50),  # it runs
        ({"exec_host": "n1/0+n2/0", "Resource_List.ncpus": "2",
          "Resource_List.nodes": "2:ppn=25"}, 2),
        ({"exec_host": "n1/0-3,7", "Resource_List.nodes": "1:ppn=2"}, 5),  # -n: a node given whole
        ({"exec_host": "n1/3", "Resource_List.nodes": "n1:ppn=1:gpus=1"}, 1),
        ({"exec_host": "n1/4+n2/2", "Resource_List.nodes": "n1:ppn=4:fast+n2:ppn=2"}, 6),
        ({"exec_host": "n1/4", "Resource_List.nodes": "n1:ppn=x"}, 1),
        ({"exec_host": "n1/a", "Resource_List.nodes": "1:ppn=4"}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_processors_of_a_job(fields: dict[str, str], slots: int | None) -> None:
    """Torque's exec_host `n1/25` counted as 1 processor instead of 25: 2 CPUs for 50, 2450 %."""
    assert field_values.count_processors(fields) == slots


@pytest.mark.parametrize(
    ("text", "size"),
    [("0kb", 0), ("44048kb", 44048 << 10), ("2gb", 2 << 30), ("7b", 7), ("7", 7), ("3kw", 3 << 13),
     ("1TB", 1 << 40), ("", None), (None, None), ("x", None), ("-1kb", None)],
)  # fmt: skip
def test_sizes(text: str | None, size: int | None) -> None:
    assert field_values.parse_size_bytes(text) == size


@pytest.mark.parametrize(
    ("text", "nodes", "slots"),
    [
        ("vm/0", ("vm",), 1),
        ("vm/0+vm/1", ("vm",), 2),
        ("vm/0*8+vmb/1*8", ("vm", "vmb"), 16),
        ("n1/0-3,7+n2/0", ("n1", "n2"), 6),
        ("vm:15002/2+vmb:15003/0", ("vm", "vmb"), 2),
        ("", (), None),
        (None, (), None),
    ],
)
def test_exec_host(text: str | None, nodes: tuple[str, ...], slots: int | None) -> None:
    assert (field_values.parse_nodes(text), field_values.count_slots(text)) == (nodes, slots)


TIMES = {"ctime", "qtime", "etime", "mtime", "start_time", "comp_time"}


def test_torques_text_and_xml_say_the_same() -> None:
    folder = DATA / "torque"
    text = pbs_commands.parse_text((folder / "qstat-f-live.txt").read_text(encoding="utf-8"))
    xml = pbs_commands.parse_xml((folder / "qstat-x-live.xml").read_text(encoding="utf-8"))
    assert list(text) == list(xml) == ["204.vm", "205.vm", "206.vm", "207[].vm"]
    for job in text:
        assert {name: value for name, value in text[job].items() if name not in TIMES} == {
            name: value for name, value in xml[job].items() if name not in TIMES
        }
    assert text["204.vm"]["ctime"] == "Sat Nov 21 06:06:34 2026"
    assert xml["204.vm"]["ctime"] == "1795241194"
    assert text["205.vm"]["submit_args"].endswith(" /opt/samples/jobs/sleep.sh")


def test_openpbs_text() -> None:
    text = (DATA / "openpbs" / "qstat-f-live.txt").read_text(encoding="utf-8")
    jobs = pbs_commands.parse_text(text)
    assert list(jobs) == ["268.vm", "269.vm", "270[].vm"]
    assert jobs["270[].vm"]["array_state_count"] == "Queued:0 Running:3 Exiting:0 Expired:0"
    assert jobs["268.vm"]["Variable_List"].endswith(
        ":/bin,PBS_O_SHELL=/bin/bash,PBS_O_WORKDIR=/home/user/o,PBS_O_SYSTEM=Linux,"
        "PBS_O_QUEUE=workq,PBS_O_HOST=vm"
    )


def test_a_line_break_in_a_variable_ends_nothing() -> None:
    jobs = pbs_commands.parse_text(
        "Job Id: 1.s\n    job_state = F\n    Variable_List = A=x\ny = z,\n\tB=1\n"
        "    job_state = R\n    euser = u\n\n"
    )
    assert jobs == {"1.s": {"job_state": "F", "Variable_List": "A=x\ny = z,B=1", "euser": "u"}}


def test_xml_cut_short_is_told() -> None:
    with pytest.raises(MissingError, match="qstat -x is not XML"):
        pbs_commands.parse_xml("<Data><Job>")
    assert pbs_commands.parse_xml("") == {}


@pytest.mark.parametrize(
    ("dialect", "status", "words", "expected"),
    [
        ("torque", 0, {}, ("completed", 0)),
        ("openpbs", 3, {}, ("failed", 3)),
        ("openpbs", 139, {}, ("failed", 139)),
        ("openpbs", 0, {"deleted_by": "labpbs@vm"}, ("cancelled", 0)),
        ("torque", 2, {"deleted_by": "labpbs@vm"}, ("cancelled", 2)),
        ("torque", 271, {"deleted_by": "labpbs@vm"}, ("cancelled", 143)),
        ("torque", 271, {}, ("cancelled", 143)),
        ("openpbs", 271, {"out_of_time": True}, ("timeout", 143)),
        ("openpbs", 265, {"deleted_by": "root@vm", "out_of_time": True}, ("cancelled", 137)),
        ("torque", -11, {}, ("timeout", None)),
        ("openpbs", -29, {}, ("timeout", None)),
        ("openpbs", -11, {}, ("failed", None)),
        ("torque", -2, {}, ("failed", None)),
        ("torque", -14, {}, ("failed", None)),
        ("torque", -14, {"deleted_by": "root@vm"}, ("cancelled", None)),
        ("openpbs", -16, {}, ("failed", None)),
        ("openpbs", -22, {}, ("failed", None)),
        ("openpbs", -27, {}, ("out_of_memory", None)),
        ("torque", None, {"deleted_by": "a@b"}, ("cancelled", None)),
        ("torque", None, {}, ("lost", None)),
    ],
)
def test_exit_statuses(
    dialect: str, status: int | None, words: dict[str, object], expected: tuple[str, int | None]
) -> None:
    found = field_values.decide_outcome(dialect, status, **words)  # type: ignore[arg-type]
    assert (found.state, found.exit_code) == expected
    assert (found.reason is None) is (found.state == "completed")


def test_slurms_qstat_is_none_of_pbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("qstat", "pbsnodes"):
        path = tmp_path / name
        path.write_text("#! /usr/bin/perl -w\n# queries slurm jobs\n", encoding="utf-8")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (pbs_commands.is_installed(), pbs_commands.detect_dialect()) == (False, None)


def test_torque_prints_a_document_for_each_job() -> None:
    found = pbs_commands.parse_xml((DATA / "torque/qstat-x-two-arrays.xml").read_text())
    assert [*found] == ["93[0].vm", "93[1].vm", "94[0].vm", "94[1].vm"]


def test_a_task_that_was_deleted_while_it_waited_never_began() -> None:
    """OpenPBS gives it the array's start and exit status."""
    told = pbs_commands.parse_text((DATA / "openpbs/qstat-xtf-array-deleted.txt").read_text())
    assert told["73[2].opbs"]["Exit_status"] == "1"
    found = {
        id_: accounting_rows.build_qstat_row(id_, job, field_values.OPENPBS)
        for id_, job in told.items()
    }
    assert found.pop("73[].opbs") is None
    ends = [(row.state, row.start_unix_s) for row in found.values() if row is not None]
    assert ends == [("timeout", 1795377158.0)] * 2 + [("cancelled", None)] * 4
