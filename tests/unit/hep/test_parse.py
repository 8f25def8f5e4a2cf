"""Recorded output of xrootd and roottree: what the figures are, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.jobscripts import registry
from steelyard.jobscripts.hep import client_output, xrootd_server
from steelyard.jobscripts.registry import FailedError, OutputError

DATA = Path(__file__).parents[2] / "data"
GIVEN: dict[str, object] = {
    "events": 3000, "cluster": 1000, "step": 1000, "clients": 2, "iterations": 2,
}  # fmt: skip


def body(mode: str) -> list[dict[str, Any]]:
    """Return the lines of a recorded output except the last."""
    text = (DATA / "xrootd" / f"{mode}.out").read_text()
    return [json.loads(line) for line in text.splitlines()[:-1]]


def parse(folder: Path, objects: list[dict[str, Any]], mode: str) -> list[registry.Result]:
    """Return what the parser makes of these lines and a last line that fits."""
    writer = client_output.Writer("xrootd")
    for content in objects:
        writer.add(content["kind"], content)
    (folder / "out.0").write_text(writer.text())
    return registry.load("xrootd").parse(folder, 0, {**GIVEN, "mode": mode})


def test_figures_are_of_all_clients_together(tmp_path: Path) -> None:
    objects = body("analysis")
    found = {(r.metric, r.iteration): r.value for r in parse(tmp_path, objects, "analysis")}
    one, two = objects[1]["clients"]
    seconds = max(one["end_s"], two["end_s"]) - min(one["begin_s"], two["begin_s"])
    assert found["seconds", 1] == seconds
    assert found["events_per_s", 1] == 6000 / seconds
    assert found["bytes_read", 1] == one["bytes_read"] + two["bytes_read"]
    assert found["bytes_per_s", 1] == found["bytes_read", 1] / seconds
    assert found["client_cpu_s", 1] == one["cpu_s"] + two["cpu_s"]
    own = [c["end_s"] - c["begin_s"] for c in (one, two)]
    assert found["wait_share", 1] == (one["wait_s"] + two["wait_s"]) / sum(own)
    # 2 clients, 2 iterations, 3 steps
    assert found["server_vector_read_requests", 1] == 12
    assert found["vector_read_requests", 1] + found["vector_read_requests", 2] == 12
    assert ("server_bytes", 2) not in found


@pytest.mark.parametrize(
    ("mode", "absent"),
    [
        ("xrdcp", {"events_per_s", "wait_share", "read_requests", "vector_read_requests"}),
        ("local", {"server_bytes", "server_read_requests", "server_vector_read_requests"}),
    ],
)
def test_what_a_mode_does_not_know_is_left_out(tmp_path: Path, mode: str, absent: set[str]) -> None:
    metrics = {r.metric for r in parse(tmp_path, body(mode), mode)}
    assert "seconds" in metrics
    assert metrics & absent == set()


@pytest.mark.parametrize(
    ("mode", "key", "value"),
    [
        ("analysis", "selected", 463),
        ("analysis", "written", 463),
        ("analysis", "mass_sum_gev", 41586.5),
        ("analysis", "sha256", "00"),
        ("xrdcp", "sha256", "00"),
    ],
)
def test_a_client_that_found_something_else_has_failed(
    tmp_path: Path, mode: str, key: str, value: object
) -> None:
    objects = body(mode)
    assert objects[2]["clients"][1]["found"][key] != value
    objects[2]["clients"][1]["found"][key] = value
    with pytest.raises(FailedError, match=f"^client 1 found {key} = "):
        parse(tmp_path, objects, mode)


def test_last_digits_of_the_masses_may_differ(tmp_path: Path) -> None:
    objects = body("analysis")
    objects[1]["clients"][0]["found"]["mass_sum_gev"] *= 1 + 1e-13
    assert parse(tmp_path, objects, "analysis")


def test_without_an_expectation_nothing_is_compared(tmp_path: Path) -> None:
    objects = body("analysis")
    objects[0]["expected"] = None
    objects[1]["clients"][0]["found"]["selected"] = 1
    assert parse(tmp_path, objects, "analysis")


def test_lines_in_another_order_or_number_are_refused(tmp_path: Path) -> None:
    objects = body("analysis")
    with pytest.raises(OutputError, match="lines of the kinds"):
        parse(tmp_path, [objects[1], objects[0], *objects[2:]], "analysis")
    with pytest.raises(OutputError, match="lines of the kinds"):
        parse(tmp_path, objects[:1], "analysis")
    with pytest.raises(OutputError, match="1 iteration, not 2"):
        parse(tmp_path, [objects[0], *objects[2:]], "analysis")


def test_a_time_of_nothing_cannot_be(tmp_path: Path) -> None:
    objects = body("analysis")
    for one in objects[1]["clients"]:
        one["end_s"] = one["begin_s"] = 1.0
    with pytest.raises(OutputError, match="cannot be"):
        parse(tmp_path, objects, "analysis")


def test_the_counts_in_a_servers_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = (DATA / "xrootd/stats.5.5.3.xml").read_text()
    counts, links = xrootd_server.counts_in(answer)
    assert links == 1
    assert counts == {
        "opens": 0, "reads": 0, "page_reads": 0, "vector_reads": 0, "vector_segments": 0,
        "bytes_sent": 0,
    }  # fmt: skip
    counts, _ = xrootd_server.counts_in(answer.replace("<rv>0<", "<rv>7<"))
    assert counts is not None
    assert counts["vector_reads"] == 7
    without = [answer.replace(f'id="{name}"', 'id="x"') for name in ("xrootd", "link", "poll")]
    for damaged in ("", answer[:100], *without):
        assert xrootd_server.counts_in(damaged) == (None, 0)


def test_a_client_is_there_until_the_server_has_counted_its_requests() -> None:
    """Its link is gone first: 0 requests of 12 were told where the server was kept waiting then."""
    answer = (DATA / "xrootd/stats.5.5.3.xml").read_text()
    assert "<att>1</att>" in answer
    assert xrootd_server.counts_in(answer.replace("<att>1</att>", "<att>2</att>"))[1] == 2
    assert xrootd_server.counts_in(answer.replace("<num>1</num>", "<num>2</num>", 1))[1] == 2
