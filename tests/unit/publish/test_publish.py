"""What `steelyard publish` finds to write, and what it leaves alone; the writer is a stand-in."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis.sources import admin_comment, sacct
from steelyard.analysis.sources.accounting import AccountingRow
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
        self.which = which
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


def test_which_jobs_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever zone this is: sacct reads UTC from us. And by state: without, slurmdbd passes over jobs
    that it was never told the eligible time of."""
    accounting = Accounting()
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        publish.look(publish.Asked(3600, []), accounting, NOW)
    finally:
        monkeypatch.undo()
        time.tzset()
    words = list(accounting.which)
    assert words[words.index("-S") + 1] == "2023-11-14T21:13:20"
    assert words[words.index("-E") + 1] == "2023-11-14T22:13:20"
    assert {"R", "CD", "F", "TO"} <= set(words[words.index("-s") + 1].split(","))


def test_why_a_node_has_refused_a_condition_is_told(tmp_path: Path) -> None:
    why = "--netem=delay=1ms: this kernel has no sch_netem"
    missing = {"network_conditions": f"refused: {why}", "energy.energy_j": "no RAPL"}
    HELP.write_record(tmp_path / "7", "n1", START, "7", missing=missing)
    own = admin_comment.own(written(look(tmp_path, row()))["admin_comment"])
    assert own is not None and own["refused"] == why


def test_totals_in_place_of_what_the_start_had(tmp_path: Path) -> None:
    HELP.write_record(tmp_path / "7", "n1", START, "7")
    begun = '{"steelyard":{"tags":{"a":"b"},"nodes":1,"nodes_weighed":0}}'
    assert '"cpu_s":5' in written(look(tmp_path, row(comment=begun)))["admin_comment"]


def test_what_a_step_has_written_is_replaced_by_the_whole_job(tmp_path: Path) -> None:
    HELP.write_record(tmp_path / "7", "n1", START, "7")
    half = '{"steelyard":{"nodes":1,"so_far":true,"cpu_s":2.5}}'
    own = admin_comment.own(written(look(tmp_path, row(comment=half)))["admin_comment"])
    assert own is not None
    assert (own["cpu_s"], own["so_far"]) == (5, False)


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


def test_a_node_cut_short_leaves_the_job_without_totals_and_needs_no_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine where cron runs it may have no DuckDB; samples are not a record's totals."""
    monkeypatch.setitem(sys.modules, "duckdb", None)
    job = {"scheduler": "slurm", "exclusive": True}
    for node, why in (("n1", None), ("n2", "the sampler was killed by signal 9")):
        HELP.write_record(
            tmp_path / "7", node, START, "7", job=job, energy={"energy_j": 10.0},
            complete=why is None, incomplete_reason=why, incomplete_of=why and "job",
        )  # fmt: skip
    document = written(look(tmp_path, row(NodeList="n[1-2]"), energy=True))
    own = admin_comment.own(document["admin_comment"])
    assert own is not None and "energy_j" not in document
    assert (own["nodes"], own["nodes_weighed"], own["cpu_s"], own["energy_j"]) == (2, 1, None, None)


@pytest.mark.parametrize("joules", [None, float("nan"), -1.0, 2.0**63, float("inf")])
def test_joules_that_are_none_are_not_written_as_a_number(tmp_path: Path, joules: Any) -> None:
    job = {"scheduler": "slurm", "exclusive": True}
    HELP.write_record(tmp_path / "7", "n1", START, "7", job=job, energy={"energy_j": joules})
    found = look(tmp_path, row(ConsumedEnergyRaw="0"), energy=True)
    assert [wish.document.get("energy_j") for wish in found.wishes] in ([], [None])


def test_no_joules_at_all_are_0_where_they_were_counted(tmp_path: Path) -> None:
    job = {"scheduler": "slurm", "exclusive": True}
    HELP.write_record(tmp_path / "7", "n1", START, "7", job=job, energy={"energy_j": 0.0})
    assert written(look(tmp_path, row(ConsumedEnergyRaw=""), energy=True))["energy_j"] == 0
    assert "energy_j" not in written(look(tmp_path, row(ConsumedEnergyRaw="0"), energy=True))


def test_jobs_of_two_clusters_with_one_id_are_two(tmp_path: Path) -> None:
    """One that still runs on the other held back the one that was over."""
    HELP.write_record(tmp_path / "7", "n1", START, "7")
    later = str(int(START) + 100)
    other = row(Cluster="d", State="RUNNING", Start=later, End="Unknown", Submit=later)
    found = look(tmp_path, row(), other)
    assert (found.jobs, written(found)["cluster"]) == (1, "c")


def test_of_a_requeued_job_the_last_start_has_its_own_record(tmp_path: Path) -> None:
    """And says when it was submitted, by which Slurm's own last job of that id is told apart."""
    HELP.write_record(tmp_path / "7", "n1", START - 50, "7", tags={"start": "1"})
    HELP.write_record(tmp_path / "7", "n1", START, "7", tags={"start": "2"})
    before = str(int(START) - 50)
    first = row(State="REQUEUED", Start=before, End=before, Submit=before)
    document = written(look(tmp_path, row(Submit=str(int(START) - 1)), first))
    assert document["submit_unix_s"] == START - 1
    own = admin_comment.own(document["admin_comment"])
    assert own is not None and own["tags"] == {"start": "2"}
    assert own["elapsed_s"] == 20
    waits = row(State="PENDING", Start="Unknown", End="Unknown", Submit=str(int(START) + 30))
    assert look(tmp_path, row(), waits).wishes == []


@pytest.mark.parametrize(("raw", "shown", "offset"), [("9", "9+0", 0), ("10", "9+1", 1)])
def test_components_of_a_heterogeneous_job_are_named_by_their_own_ids(
    tmp_path: Path, raw: str, shown: str, offset: int
) -> None:
    HELP.write_record(tmp_path / raw, "n1", START, raw)
    found = row(raw, JobID=shown)
    assert found.het_offset == offset
    assert written(look(tmp_path, found))["job_id"] == int(raw)


def test_what_the_last_words_of_several_nodes_say(tmp_path: Path) -> None:
    """Sums; the largest memory; of tags the last node's word, in the order of the nodes' names."""
    for node, seconds in (("n2", 2.0), ("n1", 1.0)):
        values = {"cpu": {"cpu_s": seconds}, "tags": {"who": node, node: "x"}}
        HELP.write_record(tmp_path / "7", node, START, "7", **values)
    own = admin_comment.own(written(look(tmp_path, row(NodeList="n[1-2]")))["admin_comment"])
    assert own is not None and (own["nodes"], own["nodes_weighed"], own["cpu_s"]) == (2, 2, 3)
    assert own["tags"] == {"n1": "x", "n2": "x", "who": "n2"}


def test_no_more_than_was_asked_for(tmp_path: Path) -> None:
    for job in ("7", "8"):
        HELP.write_record(tmp_path / job, "n1", START, job)
    found = look(tmp_path, row(), row("8"), most=1)
    assert (len(found.wishes), found.later) == (1, 1)
