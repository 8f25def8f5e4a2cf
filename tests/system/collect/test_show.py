"""steelyard show: one job from the accounting, its records, or either alone."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.collect import study as HELP
from tests.unit.collect.conditions import conditions

from steelyard.analysis.base.errors import MissingError, UsageError
from steelyard.analysis.job import job_lookup, job_view
from steelyard.analysis.sources import accounting_readers, admin_comment
from steelyard.analysis.store.energy_shares import IdlePower
from steelyard.wrappers.commands import cli
from steelyard.wrappers.show import job_data, job_document, job_text


@pytest.fixture
def study(tmp_path: Path) -> Any:
    study = HELP.Study(tmp_path)
    study.everything()
    return study


def look_up(study: Any, job_id: str) -> job_view.JobView:
    return job_lookup.look_up(job_id, [study.record_dir], study.accounting)


def shown(view: job_view.JobView, capsys: pytest.CaptureFixture[str]) -> str:
    job_text.print_job(job_data.read_details(view))
    return capsys.readouterr().out


def test_a_job_on_two_nodes(study: Any, capsys: pytest.CaptureFixture[str]) -> None:
    view = look_up(study, "11")
    assert view.total("cpu_s") == 10.0
    assert view.total("max_memory_bytes") == 3000
    assert view.total("energy_j") is None
    text = shown(view, capsys)
    assert "job 11: twonodes, of root on steelyard" in text
    assert "completed, exit code 0" in text
    for node in study.row("11").nodes:
        assert f"{node}: energy_j: no RAPL: /sys/class/powercap is absent" in text
    assert "kvm" in text and "eth0 (virtio)" in text and "6.1.0" in text
    assert "3 samples, 1 ms of CPU" in text


def test_a_name_that_would_command_the_terminal(
    study: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """A job's name and its tags are anybody's, and root looks at them too."""
    view = look_up(study, "11")
    assert view.row is not None
    view.row = dataclasses.replace(view.row, name="\x1b]0;title\x07\x9b31m\u202ex\nline 2")
    view.nodes[0].record.document["tags"] = {"evil": "\x1b[2J"}
    text = shown(view, capsys)
    assert "job 11: ?]0;title??31m?x?line 2, of root" in text
    assert "evil=?[2J" in text
    assert text.replace("\n", "").isprintable()


def test_an_array_task_by_both_of_its_names(study: Any, capsys: pytest.CaptureFixture[str]) -> None:
    raw = study.task_row("2", 0).job_id
    for name, heading in (("2_0", "job 2_0: arr"), (raw, f"job {raw} (array task 2_0): arr")):
        view = look_up(study, name)
        assert view.row is not None and view.row.job_id == raw
        assert [node.record.path.parent.name for node in view.nodes] == [raw]
        assert heading in shown(view, capsys)


def test_show_of_an_array_is_a_table_of_its_tasks(
    study: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        study.accounting, "without_retries", lambda: study.accounting, raising=False
    )
    monkeypatch.setattr(accounting_readers, "readers_of_job_id", lambda _: [study.accounting])
    words = ["show", "2", "--record-dir", str(study.record_dir)]
    assert cli.main(words) == 0
    out = capsys.readouterr().out
    assert all(f"2_{task}" in out for task in range(4)) and "all 4" in out
    assert cli.main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (len(found["jobs"]), found["array"]["tasks"]) == (4, 4)


def test_a_whole_array_is_no_job(study: Any) -> None:
    with pytest.raises(UsageError, match=r"an array of 4 jobs: ask for one of 2_0, 2_1, 2_2, 2_3"):
        look_up(study, "2")


def test_the_last_start_of_a_requeued_job(study: Any, capsys: pytest.CaptureFixture[str]) -> None:
    view = look_up(study, "16")
    assert len(view.earlier_starts) == 2
    assert view.row is not None and view.row.state == "completed"
    assert [node.record.tags for node in view.nodes] == [{"restart": "2"}]
    text = shown(view, capsys)
    assert "started 2 times before" in text and "2 records of other starts of this id" in text


def test_another_job_of_the_same_id_is_no_start_of_it(
    study: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids come again, after the highest; nine years ago 11 was somebody else's."""
    (mine,) = job_lookup.group_starts(study.accounting.rows(["11"]))
    old = dataclasses.replace(mine.row, user="other", start_unix_s=1_507_052_369.0,
                              end_unix_s=1_507_053_369.0, submit_unix_s=1_507_052_000.0)  # fmt: skip
    monkeypatch.setattr(job_lookup, "query_start", lambda *_: [job_lookup.Start(old), mine])
    view = look_up(study, "11")
    assert view.row is not None and view.row.user == mine.row.user
    assert view.earlier_starts == ()
    assert view.other_starts == (1_507_052_369.0,)
    assert "times before" not in shown(view, capsys)


def test_a_job_that_never_started(study: Any, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(look_up(study, "7"), capsys)
    assert "cancelled (cancelled by user id 0)" in text and "started –" in text


def test_a_record_cut_short_is_said_and_its_last_sample_shown(
    study: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    row = study.row("11")
    study.record(row, row.nodes[0], complete=False, cpu={"cpu_s": None})
    view = look_up(study, "11")
    assert {n.node: n.values["cpu_s"] for n in view.nodes} == dict.fromkeys(row.nodes, 5.0)
    assert view.total("cpu_s") is None  # a part is not the whole
    text = shown(view, capsys)
    assert f"{row.nodes[0]} (cut short)" in text and "was cut short" in text


def test_a_node_without_a_record_leaves_no_total(study: Any) -> None:
    row = study.row("11")
    next((study.record_dir / "11").glob(f"{row.nodes[0]}.*.json")).unlink()
    view = look_up(study, "11")
    assert view.total("cpu_s") is None
    assert any(f"none of {row.nodes[0]} in" in line for line in view.missing)


def test_records_alone_will_do(study: Any, capsys: pytest.CaptureFixture[str]) -> None:
    study.accounting.is_away = True
    view = look_up(study, "11")
    assert view.row is None and len(view.nodes) == 2
    text = shown(view, capsys)
    assert "job 11, from its records alone" in text and "sacct does not answer" in text


def test_records_alone_of_an_id_that_was_used_twice(study: Any) -> None:
    study.accounting.is_away = True
    HELP.write_record(study.record_dir / "11", "n9", study.row("11").start_unix_s - 90000, "11")
    view = look_up(study, "11")
    assert [node.node for node in view.nodes] == sorted(study.row("11").nodes)
    assert view.notes == ["1 record of other starts of this id left out"]


def test_admin_comment_alone_will_do(study: Any, capsys: pytest.CaptureFixture[str]) -> None:
    view = look_up(study, "1")
    assert view.admin_comment is None and view.nodes == []
    view.admin_comment = admin_comment.read_own_comment(
        '{"steelyard":{"node_type":"virtual","vm":"kvm","kernel":"6.1.0","nodes":1,"cpu_s":1.5}}'
    )
    text = shown(view, capsys)
    assert "from the accounting: virtual kvm none, kernel 6.1.0; sums over 1 of 1 node" in text
    assert "– (of the whole nodes), 1.5 s of CPU" in text
    view.admin_comment = admin_comment.read_own_comment('{"steelyard":{"nodes":1,"cpu_s":1.5}}')
    text = shown(view, capsys)
    assert "from the accounting: type of node not told, kernel not told; sums" in text
    view.admin_comment = admin_comment.read_own_comment(
        '{"steelyard":{"nodes":2,"nodes_measured":1,"partial":true,"cpu_s":1.5}}'
    )
    assert "sums over 1 of 2 nodes (partial):" in shown(view, capsys)


def test_a_refusal_is_told_by_the_accounting_where_no_record_can_be_read(
    study: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    why = "--netem=delay=1ms: this kernel has no sch_netem"
    comment = {"node_type": "virtual", "nodes": 1, "netem": "delay=1ms", "refused": why}
    kept = json.dumps({"steelyard": comment})
    recorded = study.accounting.rows
    monkeypatch.setattr(
        study.accounting,
        "rows",
        lambda ids: (dataclasses.replace(row, admin_comment=kept) for row in recorded(ids)),
    )
    text = shown(look_up(study, "1"), capsys)
    assert f"  refused: {why} (from the accounting)\n" in text
    assert "its record cannot be read" not in text
    (line,) = job_lookup.look_up_jobs(["1"], [study.record_dir], study.accounting)[0][0].refused
    assert line == f"refused: {why} (from the accounting)"


def test_an_unknown_job_is_told_what_to_do(study: Any) -> None:
    with pytest.raises(MissingError, match=r"job 999 is not known.*--record-dir"):
        look_up(study, "999")


@pytest.mark.parametrize("text", ["abc", "", "1;2", "../1", "1.batch", "-1", "1_", "1_2_3"])
def test_what_is_no_job_id(study: Any, text: str) -> None:
    with pytest.raises(UsageError, match="is no job id"):
        look_up(study, text)
    assert study.accounting.asked == []


def test_the_command_without_slurm(
    study: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setenv("STEELYARD_RECORD_DIR", str(study.record_dir))
    assert cli.main(["show", "11", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["totals"]["cpu_s"] == 10.0 and document["totals"]["energy_j"] is None
    assert document["job"] is None and len(document["nodes"]) == 2
    reason = document["nodes"][0]["missing"]["energy_j"]
    assert reason == "no RAPL: /sys/class/powercap is absent"
    assert "slurm-client" in document["missing"][0]


def test_the_commands_exit_codes(
    study: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    directory = ["--record-dir", str(study.record_dir)]
    assert cli.main(["show", "11", *directory]) == 0
    assert cli.main(["show", "999", *directory]) == 3
    assert "job 999 is not known" in capsys.readouterr().err
    assert cli.main(["show", "x", *directory]) == 2


def test_network_conditions_in_a_few_lines(study: Any, capsys: pytest.CaptureFixture[str]) -> None:
    both = study.row("11")
    first, second = both.nodes
    tcp = {
        "connections": 2, "rtt_min_s": 0.05, "rtt_median_s": 0.0504, "rtt_max_s": 0.06,
        "job_retransmitted_segments": 4,
    }  # fmt: skip
    full = conditions(notes=["the queue of 1000 packets was full 3 times"])
    study.record(both, first, network_conditions=full, tcp=tcp)
    bad = conditions(valid=False, invalid_reason="3 packets dropped", undone=False, rtt=None)
    study.record(both, second, network_conditions=bad)
    text = shown(look_up(study, "11"), capsys)
    assert f"{first}: delay=50ms asked for, applied: as asked, on eth0 (netem, scope node)" in text
    assert (
        f"{first}: round trip to 10.0.0.9: before 300 µs, during 50.30 ms and 50.40 ms, after "
        "300 µs; lost 0 %; 0 of 4000 packets dropped" in text
    )
    assert (
        f"{first}: the job's own TCP: round trip 50.40 ms (median; 50 ms … 60 ms), "
        "connections: 2, segments sent again: 4" in text
    )
    assert f"{first}: note: the queue of 1000 packets was full 3 times" in text
    assert f"{second}: invalid: 3 packets dropped; not undone" in text
    assert f"{second}: round trip to 10.0.0.9: before –, during – and –, after –;" in text


def test_conditions_that_were_refused_are_told(
    study: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    row = study.row("11")
    reason = "refused: --cache=cold: not yours alone"
    missing = {"cache": reason, "network_conditions": "none were asked for"}
    study.record(row, row.nodes[0], cache=None, network_conditions=None, missing=missing)
    view = look_up(study, "11")
    assert view.refused == [f"{row.nodes[0]}: {reason}"]
    assert reason in shown(view, capsys)


def test_a_job_without_conditions_says_nothing_of_them(
    study: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "network conditions" not in shown(look_up(study, "11"), capsys)


def shared_node(study: Any) -> Any:
    """Job 11, 20 s on two nodes at 160 W; on the first it used 2 of 8 busy CPUs, not alone."""
    row = study.row("11")
    own, whole = row.nodes
    energy = {"energy_j": 3200.0, "zones": []}
    job = {"scheduler": "slurm", "job_id": "11", "exclusive": True}
    study.record(row, whole, energy=energy, job=job)
    path = study.record(row, own, energy=energy, job=job | {"exclusive": False})
    lines = [f"{row.start_unix_s + s},{s},{2 * s},{160 * s},{8 * s}" for s in range(21)]
    head = "unix_s,elapsed_s,cpu_s,energy_j,node_cpu_s"
    path.with_suffix(".csv").write_text("\n".join([head, *lines, ""]), encoding="utf-8")
    return own


def test_what_of_a_shared_nodes_joules_can_be_the_jobs(
    study: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 2,000 J above idle; the arithmetic is that of tests/unit/store/test_energy_shares.py."""
    node = shared_node(study)
    view = look_up(study, "11")
    found = job_data.read_details(view, IdlePower(elsewhere_w=60.0))
    shares = found.shares
    assert list(shares) == [node]  # the other node is the job's own
    low, high = 2000 * 2 / (2 + 3 * 6.18), 2000 * 6 / (6 + 5.82)
    assert (shares[node].low_j, shares[node].high_j) == pytest.approx((low, high))
    job_text.print_job(found)
    text = capsys.readouterr().out
    assert (
        f"energy of the job on {node}, above idle: 194.7 J … 1.015 kJ; the node idle: 1.2 kJ"
        in (text)
    )
    by_node = {n["node"]: n["energy_share"] for n in job_document.as_json(found)["nodes"]}  # type: ignore[attr-defined]
    assert by_node[node]["low_j"] == pytest.approx(low)
    assert [by_node[n] for n in by_node if n != node] == [None]


def test_a_shared_node_whose_samples_are_gone_says_so(
    study: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    node = shared_node(study)
    next((study.record_dir / "11").glob(f"{node}.*.csv")).unlink()
    view = look_up(study, "11")
    job_text.print_job(job_data.read_details(view, IdlePower()))
    assert f"energy of the job on {node}: not known: its samples are not there" in (
        capsys.readouterr().out
    )
