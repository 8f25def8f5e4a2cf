"""What `steelyard publish` finds to write, and what it leaves alone; the writer is a stand-in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis.sources import admin_comment, sacct
from steelyard.analysis.sources.accounting import AccountingRow
from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.publish import publish

from ..collect import study as HELP

NOW = 1_700_000_000.0
START = NOW - 1000


class Accounting(sacct.Sacct):
    """Answers with rows of this test."""

    def __init__(self, *rows: AccountingRow) -> None:
        super().__init__()
        self.said = rows

    def starts(self, fields: Any, *which: str) -> list[AccountingRow]:
        """All of them."""
        return list(self.said)


def row(job: str = "7", comment: str = "", **changed: str) -> AccountingRow:
    cells = dict.fromkeys(sacct.FIELDS, "") | {
        "JobID": job, "JobIDRaw": job, "State": "COMPLETED", "Cluster": "c", "NodeList": "n1",
        "Start": str(int(START)), "End": str(int(START) + 20), "AdminComment": comment,
    }  # fmt: skip
    parsed = sacct.parse_row(list((cells | changed).values()))
    assert parsed is not None
    return parsed


def look(folder: Path, *rows: AccountingRow, **more: Any) -> publish.Found:
    return publish.look(publish.Asked(86400, [folder], **more), Accounting(*rows), NOW)


def written(found: publish.Found) -> dict[str, Any]:
    """What the only job of a pass is to have."""
    (wish,) = found.wishes
    return wish.document


def test_what_was_missed_is_made_from_the_record(tmp_path: Path) -> None:
    HELP.write_record(tmp_path / "7", "n1", START, "7", tags={"a": "B"})
    document = written(look(tmp_path, row(comment='{"Site": 1.50}')))
    text = document.pop("admin_comment")
    assert document == {"cluster": "c", "job_id": 7}
    assert text.startswith('{"Site": 1.50,"steelyard":{"node_type":"virtual","vm":"kvm","kernel":')
    own = admin_comment.own(text)
    assert own is not None
    assert (own["tags"], own["container"], own["exclusive"]) == ({"a": "B"}, "none", False)
    assert (own["elapsed_s"], own["cpu_s"], own["read_bytes"], own["rx_bytes"]) == (
        20,
        5,
        300,
        None,
    )
    assert own["missing"]["energy_j"] == "no RAPL"
    again = look(tmp_path, row(comment=text))
    assert (again.wishes, again.had) == ([], 1)


def test_totals_in_place_of_what_the_start_had(tmp_path: Path) -> None:
    HELP.write_record(tmp_path / "7", "n1", START, "7")
    begun = '{"steelyard":{"tags":{"a":"b"},"nodes":1,"nodes_weighed":0}}'
    assert '"cpu_s":5' in written(look(tmp_path, row(comment=begun)))["admin_comment"]


@pytest.mark.parametrize("nodes", ["n1", "n[1-2]"])
def test_no_whole_record_of_a_node_is_no_total(tmp_path: Path, nodes: str) -> None:
    HELP.write_record(tmp_path / "7", "n1", START, "7")
    found = look(tmp_path, row(NodeList=nodes))
    own = admin_comment.own(written(found)["admin_comment"])
    assert own is not None
    assert (own["nodes_weighed"], own["cpu_s"]) == ((1, 5) if nodes == "n1" else (1, None))


def test_what_is_left_alone(tmp_path: Path) -> None:
    HELP.write_record(tmp_path / "7", "n1", START, "7")
    found = look(
        tmp_path,
        row(comment="JS1:abc"),
        row("8"),
        row("9", State="RUNNING", End="Unknown"),
        row("10", End=str(int(NOW) - 30)),
    )
    assert (found.jobs, found.no_record, found.wishes) == (2, 1, [])
    assert "somebody else" in found.left["7"]


def test_array_tasks_are_named_by_their_array(tmp_path: Path) -> None:
    HELP.write_record(tmp_path / "12", "n1", START, "12")
    document = written(look(tmp_path, row("12", JobID="7_3")))
    assert (document["job_id"], document["array_task_id"]) == (7, 3)


@pytest.mark.parametrize(
    ("energy", "alone", "present", "joules"),
    [
        (True, True, "0", 124),
        (True, True, "124", None),
        (True, False, "0", None),
        (False, True, "0", None),
    ],
)
def test_joules_of_jobs_that_were_alone(
    tmp_path: Path, energy: bool, alone: bool, present: str, joules: int | None
) -> None:
    job = {"scheduler": "slurm", "exclusive": alone}
    HELP.write_record(tmp_path / "7", "n1", START, "7", job=job, energy={"energy_j": 123.6})
    found = look(tmp_path, row(ConsumedEnergyRaw=present), energy=energy)
    assert written(found).get("energy_j") == joules


def test_no_more_than_was_asked_for(tmp_path: Path) -> None:
    for job in ("7", "8"):
        HELP.write_record(tmp_path / job, "n1", START, job)
    found = look(tmp_path, row(), row("8"), most=1)
    assert (len(found.wishes), found.later) == (1, 1)


def test_what_slurmdbd_refuses_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "slurmdb"
    program.write_text(
        '#!/bin/sh\nIFS= read -r line; printf \'%s\' "$line" >$0.said; echo \'{"error":"no right"}\'\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("STEELYARD_SLURMDB", str(program))
    for job in ("7", "8"):
        HELP.write_record(tmp_path / job, "n1", START, job)
    found = look(tmp_path, row(), row("8"))
    publish.write(found)
    assert found.failed == {"7": "no right", "8": "no answer"}
    assert json.loads((tmp_path / "slurmdb.said").read_text())["job_id"] == 7
    program.write_text("#!/bin/sh\necho 'away' >&2; exit 3\n")
    with pytest.raises(MissingError, match="nothing was written: away"):
        publish.write(found)
