"""Network conditions in the report: sentences, table, figure, and what invalid runs do to means."""

from __future__ import annotations

import html
import json
import re
import statistics
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from steelyard.analysis.figures.rtt import Box, has_wide_range, read_boxes
from steelyard.analysis.findings.registry import find_all
from steelyard.analysis.report.figures import draw_rtt
from steelyard.analysis.report.network import build_network_section, format_loss
from steelyard.analysis.report.page import write_report
from steelyard.analysis.stats.basics import wilson
from steelyard.analysis.summary.network import NodeNetwork, pool_readings
from steelyard.analysis.summary.summary import summarize
from steelyard.wrappers.commands import cli

LEVELS = {"none": 0.0003, "delay=25ms": 0.0253, "delay=50ms": 0.0504}
RUNS = 6


@pytest.fixture
def maker(synthetic: ModuleType) -> Any:
    """Three levels, six runs each; the last run with 50 ms is invalid."""
    maker = synthetic.StudyMaker("wan", {"network": list(LEVELS)}, {"network": "none"})
    for number in range(1, RUNS + 1):
        for level, rtt in LEVELS.items():
            bad = number == RUNS and level == "delay=50ms"
            more = {"valid": False, "invalid_reason": "n1: 3 packets dropped"} if bad else {}
            run = maker.run("x", {}, {"network": level}, number, **more)
            maker.result(run, "seconds", 99.0 if bad else 10 + 40 * rtt + number / 100, "s")
            maker.record(
                run, "n1", 10.0, rtt_median_s=rtt * (1 + number / 1000), **tcp(rtt, number)
            )
            maker.samples(run, "n1", 10.0)
            for place, sample in enumerate(maker.rows["samples"][-11:]):
                sample["rtt_s"] = rtt * (1 + place / 100) if place else None
            if level != "none":
                add_network(maker, run, level, rtt, bad)
    return maker


def tcp(rtt: float, number: int) -> dict[str, Any]:
    """Return the sampler's TCP figures of the kernel; the last job lost its floor."""
    floor = None if number == RUNS else 0.9 * rtt + number * 1e-6
    return {
        "tcp_connections": 2,
        "rtt_readings": 10 * number,
        "rtt_min_s": 0.95 * rtt,
        "rtt_mean_s": rtt * (1 + number / 100),
        "rtt_sd_s": 0.01 * rtt,
        "rtt_max_s": 2 * rtt + number * 1e-5,
        "job_retransmitted_segments": number,
        "record": json.dumps({"missing": {}, "probe": {}, "tcp": {"rtt_floor_s": floor}}),
    }


def add_network(maker: Any, run: tuple[str, str], level: str, rtt: float, bad: bool) -> None:
    row = {
        "requested": level,
        "applied": level,
        "scope": "node",
        "qdisc": "netem",
        "devices": ["eth0"],
        "peer": "10.0.0.9",
        "rtt_before_s": 0.0003,
        "rtt_during_start_s": rtt,
        "rtt_during_end_s": rtt + 0.0002,
        "rtt_after_s": 0.0004,
        "loss_achieved": 0.01,
        "loss_packets": 1000,
        "sent_packets": 990,
        "dropped_packets": 3 if bad else 0,
        "valid": not bad,
        "undone": not bad,
    }
    maker.rows["network"].append({"run_id": run[0], "attempt": run[1], "node": "n1"} | row)


def page_of(folder: Path, tmp_path: Path) -> str:
    path = tmp_path / "report.html"
    write_report(summarize(folder), path)
    words = re.sub(r"<style>.*?</style>|<[^>]+>", " ", path.read_text("utf-8"), flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(words))


def test_the_section_says_what_was_asked_for_and_measured(maker: Any, tmp_path: Path) -> None:
    words = page_of(maker.write(tmp_path), tmp_path)
    assert (
        "network=delay=50ms: a round trip to 10.0.0.9 took 50.50 ms, 50.20 ms more than before "
        "(median over 5 jobs on a node)." in words
    )
    assert (
        "1 of 12 completed runs with network conditions did not keep them, and they are in no "
        "mean: n1: 3 packets dropped (1)." in words
    )
    assert "After 1 job on a node the conditions were not undone" in words
    row = "delay=25ms delay=25ms eth0 (netem, node) 300 µs 25.40 ms 400.0 µs 25.39 ms"
    assert f"{row} 1 % (0.78 … 1.3) of 6000 packets 6 of 6" in words
    assert "network=none none – – – – – 301.1 µs – 6 of 6" in words


def test_of_many_conditions_one_sentence_tells_the_ends(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    levels = {f"delay={number}ms": number / 1000 for number in range(10, 18)}
    maker = synthetic.StudyMaker("many", {"network": list(levels)}, {"network": "delay=10ms"})
    for level, rtt in levels.items():
        run = maker.run("x", {}, {"network": level}, 1)
        maker.record(run, "n1", 10.0)
        add_network(maker, run, level, rtt, bad=False)
    part = build_network_section(summarize(maker.write(tmp_path)))
    assert part is not None
    first, second, *_ = part["sentences"]
    assert list(part["table"].anchors) == [f"runs-{number}" for number in range(1, 9)]
    assert first.startswith("Under 8 conditions a round trip took 10.10 ms to 17.10 ms")
    assert second == "All 8 completed runs with network conditions kept them."


def test_runs_that_nothing_was_applied_to_are_counted_among_the_invalid(
    maker: Any, tmp_path: Path
) -> None:
    """They have no row of a network, but requested one: the counts of runs and of reasons are
    equal.
    """
    for row in maker.rows["runs"]:
        if row["condition_label"] == "network=delay=25ms":
            row |= {"valid": False, "invalid_reason": "not applied on any node"}
    gone = {row["run_id"] for row in maker.rows["runs"] if not row["valid"]}
    maker.rows["network"] = [r for r in maker.rows["network"] if r["run_id"] not in gone]
    part = build_network_section(summarize(maker.write(tmp_path)))
    assert part is not None
    (told,) = [text for text in part["sentences"] if "did not keep" in text]
    assert told.startswith("7 of 12 completed runs")
    assert "not applied on any node (6)" in told


def test_without_any_measurement_there_is_no_section(demo_folder: Path, tmp_path: Path) -> None:
    assert "Network conditions" not in page_of(demo_folder, tmp_path)
    assert build_network_section(summarize(demo_folder)) is None


def test_all_kept_is_one_sentence(maker: Any, tmp_path: Path) -> None:
    maker.rows["runs"] = [row | {"valid": True} for row in maker.rows["runs"]]
    part = build_network_section(summarize(maker.write(tmp_path)))
    assert part is not None
    assert "All 12 completed runs with network conditions kept them." in part["sentences"]


def test_the_figure_has_every_source_of_every_condition(maker: Any, tmp_path: Path) -> None:
    summary = summarize(maker.write(tmp_path))
    boxes = {box[:2]: box[2:] for box in read_boxes(summary)}
    assert set(boxes) == {
        (f"network={level}", source)
        for level in LEVELS
        for source in ("samples", "jobs", "probe")
        if level != "none" or source != "probe"
    }
    assert boxes["network=delay=50ms", "samples"][0] == 5 * 10  # the invalid run is left out
    assert boxes["network=delay=25ms", "jobs"][3] == pytest.approx(0.0253 * 1.0035)
    drawing = draw_rtt(summary)
    assert drawing is not None and len(drawing.rows) == 8
    assert "means of the job's sockets at a reading: n = 170" in drawing.caption
    (axes,) = drawing.figure.axes
    assert axes.get_xscale() == "log" and axes.get_xlabel() == "round-trip time (ms)"


def test_invalid_runs_count_only_when_asked_for(
    maker: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = maker.write(tmp_path)
    usual, all_in = summarize(folder), summarize(folder, include_invalid=True)
    for summary, n, words in (
        (usual, 5, "In no mean."),
        (all_in, 6, "In the means, as asked for."),
    ):
        row = summary.row("x", "network=delay=50ms", "seconds")
        assert row is not None and row.n == n and row.group.counts.invalid == 1
        (finding,) = (f for f in find_all(summary) if f.kind.code == "SY03")
        assert finding.text.endswith(words)
    for options, n in (([], 5), (["--include-invalid"], 6)):
        assert cli.main(["report", str(folder), "--json", *options]) == 0
        rows = json.loads(capsys.readouterr().out)["rows"]
        (found,) = (
            r["n"]
            for r in rows
            if (r["condition"], r["metric"]) == ("network=delay=50ms", "seconds")
        )
        assert found == n


def test_the_jobs_own_tcp_is_told_with_all_that_the_sampler_read(
    maker: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = maker.write(tmp_path)
    words = page_of(folder, tmp_path)
    assert "Round trips of the jobs' own TCP, as the kernel saw them" in words
    # Five valid jobs of two connections; floors are 0.9 · 50.4 ms + 1 … 5 µs.
    row = "network=delay=50ms 5 10 150 45.36 ms 47.88 ms 50.55 ms 52.25 ms 803.1 µs 100.8 ms 15"
    assert row in words
    assert cli.main(["report", str(folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["network"]
    found = {one["label"]: one for one in told["tcp"]}["network=delay=50ms"]
    assert found["floor_s"] == pytest.approx(0.9 * 0.0504 + 1e-6)
    assert (found["jobs"], found["readings"], found["retransmitted"]) == (5, 150, 15)
    assert [one["valid"] for one in told["conditions"]] == [6, 6, 5]


def test_readings_of_several_jobs_are_pooled_as_one_sample() -> None:
    """Mean and sd of all readings together, from those of each job."""
    jobs = [[0.01, 0.02, 0.03], [0.05, 0.01], [0.04]]
    nodes = [
        SimpleNamespace(
            readings=len(job), tcp_mean_s=statistics.fmean(job),
            tcp_sd_s=statistics.stdev(job) if len(job) > 1 else None,
        )
        for job in jobs
    ]  # fmt: skip
    every = [value for job in jobs for value in job]
    found = pool_readings(cast("list[NodeNetwork]", nodes))
    assert found == pytest.approx((statistics.fmean(every), statistics.stdev(every)))
    assert pool_readings([]) == (None, None)


def test_wilson_agrees_with_newcombe() -> None:
    """Newcombe (1998), Statistics in Medicine 17, table I, method 3."""
    for hits, n, low, high in (
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ):
        share = wilson(hits, n)
        assert (round(share.low, 4), round(share.high, 4)) == (low, high)
    with pytest.raises(ValueError, match="found 3 of 2"):
        wilson(3, 2)


def test_no_loss_measured_is_not_no_loss() -> None:
    assert format_loss(None) == "–"
    assert format_loss(wilson(0, 4000)) == "0 % (0 … 0.096) of 4000 packets"


def test_one_long_time_out_leaves_the_other_times_to_be_seen() -> None:
    """Medians of 1 ms stood on the axis' end, since a socket had waited for 230 ms."""
    near: Box = ("a", "samples", 9, 1e-3, 1e-3, 1e-3, 2e-3, 5e-3)
    assert not has_wide_range([near])
    assert has_wide_range([near, ("b", "samples", 9, 1e-3, 1e-3, 1e-3, 2e-3, 0.23)])
