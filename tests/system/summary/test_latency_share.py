"""Shares of latency and of throughput: the model, its interval, and where it does not hold."""

from __future__ import annotations

import json
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from steelyard.analysis.findings.registry import find_all
from steelyard.analysis.report.export import build_relations, document
from steelyard.analysis.report.latency_share import build_split_section
from steelyard.analysis.stats.latency_share import Side, difference, split_difference
from steelyard.analysis.summary.latency_share import build_split_rows
from steelyard.analysis.summary.summary import summarize
from steelyard.wrappers.commands.cli import main

FAR = "delay=25ms"
LABEL = f"network={FAR}"
BYTES = 1e9


def alone(values: list[float]) -> list[list[float]]:
    """Return runs that are a job each."""
    return [[value] for value in values]


def test_the_split_is_its_model() -> None:
    """1 GB, 100 MB/s at home and 40 MB/s far away, 50 s slower: 15 s are throughput."""
    here = Side(alone([60.0, 60.1, 59.9]), alone([BYTES] * 3), alone([1 / 40e6] * 3))
    there = Side(alone([10.0, 10.1, 9.9]), alone([BYTES] * 3), alone([1 / 100e6] * 3))
    found = split_difference(here, there)
    assert found.difference_s.value == pytest.approx(50.0)
    assert (found.throughput_s.value, found.latency_s.value) == pytest.approx((15.0, 35.0))
    assert found.throughput_share is not None and found.latency_share is not None
    assert found.throughput_share.value == pytest.approx(0.3)
    assert found.latency_share.low == pytest.approx(1 - found.throughput_share.high)  # type: ignore[operator]
    # By hand: only the difference has an error, so the share's ends are 15 s by its ends.
    low, high = found.difference_s.low, found.difference_s.high
    assert low is not None and high is not None
    assert found.throughput_share.low == pytest.approx(15 / high, rel=1e-3)
    assert found.throughput_share.high == pytest.approx(15 / low, rel=1e-3)


def test_a_difference_is_welchs() -> None:
    from scipy.stats import ttest_ind

    chance = np.random.default_rng(3)
    a, b = chance.normal(11, 1, 7).tolist(), chance.normal(10, 3, 12).tolist()
    found, theirs = difference(alone(a), alone(b)), ttest_ind(a, b, equal_var=False)
    low, high = theirs.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((low, high))


def test_jobs_count_and_not_runs() -> None:
    chance = np.random.default_rng(5)
    jobs = [(10 + luck + chance.normal(0, 0.01, 4)).tolist() for luck in chance.normal(0, 1, 5)]
    runs = alone([value for job in jobs for value in job])
    by_job, by_run = difference(jobs, [[0.0]] * 5), difference(runs, [[0.0]] * 20)
    assert by_job.value == pytest.approx(by_run.value)
    assert by_job.high - by_job.low > 1.8 * (by_run.high - by_run.low)  # type: ignore[operator]


def test_too_few_jobs_have_no_shares() -> None:
    side = Side(alone([1.0, 2.0]), alone([BYTES] * 2), alone([1e-8] * 3))
    with pytest.raises(ValueError, match="3 jobs of runs and of transfers are needed"):
        split_difference(side, side)


def add_runs(
    maker: Any, number: int, level: str, seconds: float, rate: float, moved: float
) -> None:
    """An analysis and a bulk transfer under one condition."""
    condition = {"network": level}
    run = maker.run("xrootd", {"events": 1000}, condition, number)
    maker.result(run, "seconds", seconds, "s")
    maker.result(run, "bytes_read", moved, "bytes", None, primary=False)
    maker.result(run, "wait_share", 1 - 5 / seconds, "1", primary=False)
    bulk = maker.run("xrootd", {"mode": "xrdcp"}, condition, number)
    maker.result(bulk, "seconds", BYTES / rate, "s")
    maker.result(bulk, "bytes_per_s", rate, "bytes_per_s", "higher", primary=False)


@pytest.fixture
def make(synthetic: ModuleType, tmp_path: Path) -> Any:
    """A study of 6 blocks: 1 GB read in 60 s far away and in 10 s at home."""

    def made(
        far_s: float = 60.0, far_rate: float = 40e6, moved: float = BYTES, blocks: int = 6
    ) -> Path:
        maker = synthetic.StudyMaker("wan", {"network": ["none", FAR]}, {"network": "none"})
        chance = random.Random(4)
        for number in range(1, blocks + 1):
            noise = [chance.gauss(1, 0.01) for _ in range(4)]
            add_runs(maker, number, "none", 10 * noise[0], 100e6 * noise[1], BYTES)
            add_runs(maker, number, FAR, far_s * noise[2], far_rate * noise[3], moved)
        folder: Path = maker.write(tmp_path)
        return folder

    return made


def test_the_report_tells_the_shares_with_intervals_and_n(make: Any) -> None:
    part = build_split_section(summarize(make()))
    assert part is not None
    model, words = part["sentences"]
    assert model.startswith("A model, not a measurement. A run takes computing + waiting")
    assert words.startswith(f"xrootd events=1000 under {LABEL}: of 5")
    assert "6 + 6 runs, 6 + 6 transfers." in words
    (row,) = part["table"].rows
    assert list(part["table"].anchors) == ["runs-2"]
    latency, throughput = row[3], row[4]
    assert latency.split()[0] in ("69.9", "70", "70.1", "70.2", "69.8") and "…" in latency
    assert abs(float(latency.split()[0]) + float(throughput.split()[0]) - 100) < 0.2


def test_json_and_page_have_them(make: Any, tmp_path: Path, capsys: Any) -> None:
    folder = make()
    assert main(["report", str(folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["latency_and_throughput"]
    (one,) = told["splits"]
    assert told["model"].startswith("A run takes computing")
    assert one["holds"] and one["n"] == [6, 6] and one["n_transfers"] == [6, 6]
    share = one["latency_share"]
    assert share["low"] < 0.7 < share["high"] and share["high"] - share["low"] < 0.03
    assert one["latency_s"]["value"] + one["throughput_s"]["value"] == pytest.approx(
        one["difference_s"]["value"]
    )
    assert main(["report", str(folder), "-o", str(tmp_path / "r.html")]) == 0
    page = (tmp_path / "r.html").read_text("utf-8")
    assert '<h2 id="split-title">Latency and throughput</h2>' in page and 'href="#split"' in page


@pytest.mark.parametrize(
    ("study", "reason"),
    [
        ({"far_rate": 5e6}, "bulk transfer alone explains"),
        ({"far_rate": 900e6}, "bulk transfers were faster under the condition"),
        ({"moved": 0.5 * BYTES}, "not the same bytes: 500 MB and 1 GB a run"),
        ({"blocks": 2}, "fewer than 3 jobs of runs or of transfers on a side"),
    ],
)
def test_where_the_model_does_not_hold_there_is_a_finding(
    make: Any, study: dict[str, Any], reason: str
) -> None:
    summary = summarize(make(**study))
    (found,) = [one for one in find_all(summary) if one.kind.code == "SY27"]
    assert reason in found.places[0]
    part = build_split_section(summary)
    assert part is not None and reason in part["sentences"][1]
    assert part["table"].rows[0][3:5] == ("–", "–")
    assert document(summary, [])["latency_and_throughput"]["splits"][0]["holds"] is False


# Seen: delay=50ms on both nodes, 1.8 s more of waiting, told as 18 % throughput, since xrdcp's own
# 14 round trips of 100 ms in 5.39 MB count as such.
SHORT = {"moved": 5.39e6, "far_s": 2.44, "near_s": 1.01}


def short_study(synthetic: ModuleType, folder: Path, bulk: str = "", **more: float) -> Path:
    """A pure delay, split by copies of SHORT, or by `bulk` for a time."""
    levels = ["loss=0%", "delay=50ms"]
    maker = synthetic.StudyMaker("short", {"network": levels}, {"network": "loss=0%"})
    for number in range(1, 6):
        for level, seconds, copy_s, rtt_s in (
            ("loss=0%", 0.97, SHORT["near_s"], 0.0002), ("delay=50ms", 2.85, SHORT["far_s"], 0.1),
        ):  # fmt: skip
            noise = 1 + number / 200
            run = maker.run("xrootd", {}, {"network": level}, number)
            maker.result(run, "seconds", seconds * noise, "s")
            maker.result(run, "bytes_read", 996e3, "bytes", None, primary=False)
            if bulk:
                copy = maker.run(bulk.split()[0], dict(w.split("=") for w in bulk.split()[1:]),
                                 {"network": level}, number)  # fmt: skip
                maker.result(copy, "received_bits_per_s", 4e8 * noise, "bit/s", "higher")
            else:
                copy = maker.run("xrootd", {"mode": "xrdcp"}, {"network": level}, number)
                maker.result(copy, "seconds", copy_s * noise, "s")
                maker.result(copy, "bytes_read", SHORT["moved"], "bytes", None, primary=False)
                maker.result(copy, "bytes_per_s", SHORT["moved"] / copy_s / noise, "bytes_per_s",
                             "higher", primary=False)  # fmt: skip
                for name, value in more.items():
                    maker.result(copy, name, value if rtt_s > 0.01 else 0.0, "x", None,
                                 primary=False)  # fmt: skip
    return Path(maker.write(folder))


@pytest.mark.parametrize(
    ("bulk", "more", "needs"),
    [
        ("", {}, "69"),  # from the requested delay
        ("", {"rtt_s": 0.1}, "69"),
        ("", {"bytes_needed": 77.7e6}, "77.70 MB"),  # the benchmark's own word
        ("iperf3", {}, None),  # omits its slow start
        ("nuttcp seconds=4", {}, "9 s for its slow start"),
    ],
)
def test_a_transfer_bound_by_latency_gives_no_share(
    synthetic: ModuleType, tmp_path: Path, bulk: str, more: dict[str, float], needs: str | None
) -> None:
    folder = short_study(synthetic, tmp_path, bulk, **more)
    (one,) = [o for o in build_split_rows(summarize(folder)) if o.row.group.variant == "xrootd"]
    assert one.is_valid == (needs is None)
    if needs is not None:
        assert needs in one.broken[0] and "is bound by latency itself" in one.broken[0]
        summary = summarize(folder)
        part = build_split_section(summary)
        assert part is not None and one.broken[0] in part["sentences"][1]
        told = document(summary, [])["latency_and_throughput"]["splits"][0]
        assert told["holds"] is False and one.broken[0] in told["broken"]
        assert told["throughput_share"] is None and told["latency_s"] is None
        (shares,) = [r for r in build_relations(summary, []) if r.name == "shares"]
        cells = dict(zip(shares.columns, shares.rows[0], strict=True))
        assert (cells["holds"], cells["latency_share_value"]) == (False, None)
        assert one.broken[0] in cells["broken"]  # type: ignore[operator]


def test_what_a_transfer_is_its_parameters_say_and_not_the_label(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    """A label has only what distinguishes a variant from others: a single one has no parameters."""
    for number, given in enumerate(({"protocol": "udp"}, {"seconds": 2, "omit": 0}), 1):
        maker = synthetic.StudyMaker("only", {"network": ["none", FAR]}, {"network": "none"})
        for block in range(1, 6):
            for level, seconds in (("none", 10.0), (FAR, 60.0)):
                run = maker.run("xrootd", {}, {"network": level}, block)
                maker.result(run, "seconds", seconds + block / 10, "s")
                maker.result(run, "bytes_read", BYTES, "bytes", None, primary=False)
                bulk = maker.run("iperf3", given, {"network": level}, block, variant="iperf3")
                maker.result(bulk, "received_bits_per_s", 4e8 + block, "bit/s", "higher")
        rows = build_split_rows(summarize(maker.write(tmp_path / str(number))))
        assert len(rows) == number - 1
    assert "transfer of 2 s under network=delay=25ms is bound by latency" in rows[0].broken[0]


def test_computing_that_differs_is_no_latency(make: Any) -> None:
    import duckdb

    folder = make()
    with duckdb.connect(str(folder / "study.duckdb")) as connection:
        connection.execute(
            "UPDATE results SET value = 0.5 WHERE metric = 'wait_share' AND run_id IN "
            f"(SELECT run_id FROM runs WHERE condition_label = '{LABEL}')"
        )
    (found,) = [one for one in find_all(summarize(folder)) if one.kind.code == "SY27"]
    assert "passed while no data were waited for" in found.places[0]


def test_no_difference_breaks_nothing(make: Any) -> None:
    summary = summarize(make(far_s=10.0, far_rate=100e6))
    assert not [one for one in find_all(summary) if one.kind.code == "SY27"]
    part = build_split_section(summary)
    assert part is not None and "there is nothing to split" in part["sentences"][1]


def test_other_factors_than_the_way_to_the_data_are_not_split(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    maker = synthetic.StudyMaker(
        "types", {"node_type": ["physical", "virtual"]}, {"node_type": "physical"}
    )
    for number in range(1, 6):
        for level, seconds in (("physical", 10.0), ("virtual", 20.0)):
            condition = {"node_type": level}
            run = maker.run("xrootd", {}, condition, number)
            maker.result(run, "seconds", seconds + number / 10, "s")
            maker.result(run, "bytes_read", BYTES, "bytes", None, primary=False)
            bulk = maker.run("iperf3", {}, condition, number)
            maker.result(bulk, "received_bits_per_s", 1e9 - number, "bit/s", "higher")
    summary = summarize(maker.write(tmp_path))
    assert len(summary.compared_rows(primary=True)) == 2
    assert build_split_rows(summary) == []


def test_without_bulk_transfers_there_is_no_section(demo_folder: Path) -> None:
    assert build_split_section(summarize(demo_folder)) is None
