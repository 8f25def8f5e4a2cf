"""What `steelyard publish` writes, and what it does not touch; the writer is simulated."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis.sources import admin_comment, sacct
from steelyard.analysis.sources.accounting import AccountingRow
from steelyard.facts import json_fields
from steelyard.wrappers.publish import publish

from ..collect import study as HELP

NOW = 1_700_000_000.0
START = NOW - 1000


class Accounting(sacct.Sacct):
    """The stand-in answers with rows of this test."""

    def __init__(self, *rows: AccountingRow) -> None:
        super().__init__()
        self.said = rows

    def read_starts(self, fields: Any, *which: str) -> list[AccountingRow]:
        """Return all starts."""
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


def look(folder: Path, *rows: AccountingRow, **more: Any) -> publish.PublishResult:
    return publish.find_comments(
        publish.PublishRequest(86400, [folder], **more), Accounting(*rows), NOW
    )


def written(found: publish.PublishResult) -> dict[str, Any]:
    """Return the comment that the only job of a pass must get."""
    (wish,) = found.planned
    own = json.loads(wish.document["own"])
    assert json_fields.compare("admin_comment", own) == []
    return wish.document


def own_of(document: dict[str, Any]) -> dict[str, Any]:
    """Return our value, including its defaults."""
    return admin_comment.fill_in_defaults(json.loads(document["own"]))


def test_what_was_missed_is_made_from_the_record(tmp_path: Path) -> None:
    HELP.write_record(tmp_path / "7", "n1", START, "7", tags={"a": "B"})
    document = written(look(tmp_path, row(comment='{"Site": 1.50}')))
    text = document.pop("own")
    assert document == {"cluster": "c", "job_id": 7}
    assert text.startswith('{"node_type":"virtual","vm":"kvm","kernel":')
    own = own_of({"own": text})
    assert (own["tags"], own["container"], own["exclusive"]) == ({"a": "B"}, "none", False)
    assert (own["elapsed_s"], own["cpu_s"], own["read_bytes"], own["rx_bytes"]) == (
        20,
        5,
        300,
        None,
    )
    assert own["missing"]["energy_j"] == "no RAPL"
    again = look(tmp_path, row(comment=f'{{"Site": 1.50,"steelyard":{text}}}'))
    assert (again.planned, again.complete) == ([], 1)


def test_which_jobs_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """In any time zone, since sacct reads UTC from us. Jobs are selected by state.

    Otherwise slurmdbd omits jobs whose eligible time it never got.
    """
    accounting = Accounting()
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        publish.find_comments(publish.PublishRequest(3600, []), accounting, NOW)
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
    own = own_of(written(look(tmp_path, row())))
    assert own["refused"] == why


def test_totals_in_place_of_a_sampler_that_did_not_answer(tmp_path: Path) -> None:
    HELP.write_record(tmp_path / "7", "n1", START, "7")
    begun = '{"steelyard":{"tags":{"a":"b"},"nodes":1,"nodes_measured":0}}'
    assert '"cpu_s":5' in written(look(tmp_path, row(comment=begun)))["own"]


def test_what_a_step_has_written_is_replaced_by_the_whole_job(tmp_path: Path) -> None:
    HELP.write_record(tmp_path / "7", "n1", START, "7")
    half = '{"steelyard":{"nodes":1,"so_far":true,"cpu_s":2.5}}'
    own = own_of(written(look(tmp_path, row(comment=half))))
    assert (own["cpu_s"], own["so_far"]) == (5, False)


def comment_of(**totals: Any) -> str:
    """What the plugin has written of a job that was alone on its node."""
    own = {"node_type": "virtual", "nodes": 1, "exclusive": True, **totals}
    return json.dumps({"steelyard": own})


def exact(folder: Path, comment: str) -> publish.PublishResult:
    """A pass over a job of 20 s, 10 kJ and 5 s of CPU by its record."""
    alone = {"scheduler": "slurm", "exclusive": True}
    HELP.write_record(folder / "7", "n1", START, "7", job=alone, energy={"energy_j": 10_000.0})
    return look(folder, row(comment=comment))


def all_totals(found: publish.PublishResult) -> dict[str, Any]:
    """Of what is to be written those that are known."""
    own = own_of(written(found))
    return {name: own[name] for name in admin_comment.IN_COMMENT if own[name] is not None}


def test_joules_that_lack_the_last_period_of_a_slow_meter_are_repaired(tmp_path: Path) -> None:
    """AdminComment had the meter's last reading before the job's end, and publish counts the job as complete."""
    known = all_totals(exact(tmp_path, ""))
    short = exact(tmp_path, comment_of(**known | {"energy_j": 7_000.0}))
    assert own_of(written(short))["energy_j"] == 10_000
    missing = exact(tmp_path, comment_of(**{n: v for n, v in known.items() if n != "energy_j"}))
    assert own_of(written(missing))["energy_j"] == 10_000


def test_a_comment_of_a_moment_before_the_records_end_is_left(tmp_path: Path) -> None:
    known = all_totals(exact(tmp_path, ""))
    found = exact(tmp_path, comment_of(**known | {"energy_j": 9_800.0, "elapsed_s": 19.6}))
    assert (found.planned, found.complete) == ([], 1)


@pytest.mark.parametrize("told", [100_000.0, 10.0])
def test_a_record_that_cannot_be_of_the_job_repairs_nothing(tmp_path: Path, told: float) -> None:
    """It is its user's to change; what root wrote at the job's end is not."""
    known = all_totals(exact(tmp_path, ""))
    found = exact(tmp_path, comment_of(**known | {"energy_j": told}))
    assert (found.planned, found.complete) == ([], 0)
    assert found.unchanged["7"] == (
        f"energy_j is {told:g} there and 10000 by its records, which cannot be"
    )


def test_a_partial_comment_is_completed_once_all_records_are_there(tmp_path: Path) -> None:
    partial = '{"steelyard":{"nodes":2,"nodes_measured":1,"partial":true,"cpu_s":5}}'
    HELP.write_record(tmp_path / "7", "n1", START, "7")
    both = row(NodeList="n[1-2]", comment=partial)
    assert look(tmp_path, both).planned == []
    HELP.write_record(tmp_path / "7", "n2", START, "7")
    document = written(look(tmp_path, both))
    own = own_of(document)
    assert (own["nodes_measured"], own["partial"], own["cpu_s"]) == (2, False, 10)
    done = row(NodeList="n[1-2]", comment=f'{{"steelyard":{document["own"]}}}')
    assert look(tmp_path, done).planned == []


@pytest.mark.parametrize("nodes", ["n1", "n[1-2]"])
def test_no_whole_record_of_a_node_is_no_total(tmp_path: Path, nodes: str) -> None:
    HELP.write_record(tmp_path / "7", "n1", START, "7")
    found = look(tmp_path, row(NodeList=nodes))
    own = own_of(written(found))
    assert (own["nodes_measured"], own["cpu_s"]) == ((1, 5) if nodes == "n1" else (1, None))


def test_a_record_whose_processes_nobody_counted_gives_all_but_what_they_used(
    tmp_path: Path,
) -> None:
    """As on a cluster without cgroups, where the kernel does not count: a cancelled job has a comment."""
    HELP.write_record(
        tmp_path / "7", "n1", START, "7", tags={"a": "B"}, energy={"energy_j": 10.0},
        job={"scheduler": "slurm", "exclusive": True}, complete=False, incomplete_reason="neither the kernel nor a cgroup has counted",
        incomplete_of="processes",
    )  # fmt: skip
    own = own_of(written(look(tmp_path, row(State="CANCELLED"))))
    assert (own["nodes"], own["nodes_measured"], own["tags"]) == (1, 1, {"a": "B"})
    assert (own["elapsed_s"], own["energy_j"], own["cpu_s"]) == (20, 10, None)
    assert own["missing"]["cpu_s"]


def test_what_the_cgroup_counted_is_written_though_processes_were_not_seen(tmp_path: Path) -> None:
    """As the sampler's answer and PBS' resources_used have it."""
    HELP.write_record(
        tmp_path / "7", "n1", START, "7", complete=False, incomplete_of="processes",
        incomplete_reason="10 s of CPU that no step reported",
        cpu={"cpu_s": 20.0, "unseen_s": 10.0, "source": "cgroup1"},
        memory={"max_memory_bytes": 4096, "source": "cgroup1"}, io={"rchar_bytes": None},
    )  # fmt: skip
    own = own_of(written(look(tmp_path, row())))
    assert (own["cpu_s"], own["cpu_unseen_s"], own["max_memory_bytes"]) == (20, 10, 4096)
    assert (own["rchar_bytes"], own["memory_source"]) == (None, "cgroup1")


def test_what_is_left_alone(tmp_path: Path) -> None:
    HELP.write_record(tmp_path / "7", "n1", START, "7")
    found = look(
        tmp_path,
        row("8"),
        row("9", State="RUNNING", End="Unknown"),
        row("10", End=str(int(NOW) - 30)),
    )
    assert (found.jobs, found.no_record, found.planned) == (1, 1, [])


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
    own = own_of(document)
    assert "energy_j" not in document
    assert (own["nodes"], own["nodes_measured"], own["cpu_s"], own["energy_j"]) == (
        2,
        1,
        None,
        None,
    )


@pytest.mark.parametrize("joules", [None, float("nan"), -1.0, 2.0**63, float("inf")])
def test_joules_that_are_none_are_not_written_as_a_number(tmp_path: Path, joules: Any) -> None:
    job = {"scheduler": "slurm", "exclusive": True}
    HELP.write_record(tmp_path / "7", "n1", START, "7", job=job, energy={"energy_j": joules})
    found = look(tmp_path, row(ConsumedEnergyRaw="0"), energy=True)
    assert [wish.document.get("energy_j") for wish in found.planned] in ([], [None])


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
    """It also has the submission time, which identifies the job among those of the same id."""
    HELP.write_record(tmp_path / "7", "n1", START - 50, "7", tags={"start": "1"})
    HELP.write_record(tmp_path / "7", "n1", START, "7", tags={"start": "2"})
    before = str(int(START) - 50)
    first = row(State="REQUEUED", Start=before, End=before, Submit=before)
    document = written(look(tmp_path, row(Submit=str(int(START) - 1)), first))
    assert document["submit_unix_s"] == START - 1
    own = own_of(document)
    assert own["tags"] == {"start": "2"}
    assert own["elapsed_s"] == 20
    waits = row(State="PENDING", Start="Unknown", End="Unknown", Submit=str(int(START) + 30))
    assert look(tmp_path, row(), waits).planned == []


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
    own = own_of(written(look(tmp_path, row(NodeList="n[1-2]"))))
    assert (own["nodes"], own["nodes_measured"], own["cpu_s"]) == (2, 2, 3)
    assert own["tags"] == {"n1": "x", "n2": "x", "who": "n2"}


def test_no_more_than_was_asked_for(tmp_path: Path) -> None:
    for job in ("7", "8"):
        HELP.write_record(tmp_path / job, "n1", START, job)
    found = look(tmp_path, row(), row("8"), most=1)
    assert (len(found.planned), found.deferred) == (1, 1)
