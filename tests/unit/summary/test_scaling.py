"""Speed-up, efficiency, energy, laws and optima of synthetic studies whose truth is known."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from steelyard.analysis.figures.scaling import list_scaling_draws
from steelyard.analysis.report.export import build_relations
from steelyard.analysis.report.latex_tables import build_latex_tables
from steelyard.analysis.report.scaling import (
    build_scaling_section,
    describe_numeric_optima,
    scaling_document,
)
from steelyard.analysis.report.terminal_text import format_summary
from steelyard.analysis.stats.scaling import Choice
from steelyard.analysis.summary.optimum import find_numeric_optima
from steelyard.analysis.summary.scaling import ScalingCurve, build_scaling_curves, find_optima
from steelyard.analysis.summary.summary import Summary, summarize

from . import synthetic
from .study_maker import StudyMaker


@pytest.fixture(scope="module")
def strong(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    return summarize(synthetic.scaled().write(tmp_path_factory.mktemp("strong")))


@pytest.fixture(scope="module")
def weak(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    made = synthetic.scaled("weak", 12, "weak")
    return summarize(made.write(tmp_path_factory.mktemp("weak")))


def mean(summary: Summary, variant: str, label: str, metric: str) -> float:
    row = summary.row(variant, label, metric)
    assert row is not None and row.interval is not None
    return row.interval.mean


CG, EP = "npb kernel=cg", "npb kernel=ep"


def test_strong_scaling_of_seconds(strong: Summary) -> None:
    cg, _ = build_scaling_curves(strong)
    one, eight = (mean(strong, CG, f"nodes={n}", "seconds") for n in (1, 8))
    last = cg.points[-1]
    assert [point.scale for point in cg.points] == [1, 2, 4, 8]
    assert last.speed_up is not None and last.efficiency is not None
    assert last.speed_up.value == pytest.approx(one / eight)
    assert last.efficiency.value == pytest.approx(one / eight / 8)
    assert last.speed_up.low is not None and last.speed_up.high is not None
    assert last.speed_up.low < 8 / 1.35 < last.speed_up.high  # the law's speed-up
    assert last.serial_fraction is not None and last.serial_fraction.low is not None
    assert last.serial_fraction.low < 0.05 < (last.serial_fraction.high or 0)
    amdahl, universal = cg.laws
    assert amdahl.serial is not None and amdahl.serial.low is not None
    assert amdahl.serial.low < 0.05 < (amdahl.serial.high or 0)
    assert universal.peak is None and universal.serial is not None
    assert cg.omitted == ("nodes=16: no values, 6 of 6 runs failed",)


def test_rates_scale_by_their_costs(strong: Summary) -> None:
    """The harmonic means' ratio, which is the inverse of the seconds' for the same work."""
    _, ep = build_scaling_curves(strong)
    one, sixteen = (mean(strong, EP, f"nodes={n}", "mops") for n in (1, 16))
    last = ep.points[-1]
    assert last.speed_up is not None and last.speed_up.value == pytest.approx(sixteen / one)
    assert ep.efficient == Choice(16, 16, 16)
    assert ep.shortest is not None and ep.shortest.is_rate and ep.shortest.choice.value == 16


def test_energy_and_node_hours(strong: Summary) -> None:
    cg, _ = build_scaling_curves(strong)
    one, eight = (mean(strong, CG, f"nodes={n}", "energy_j") for n in (1, 8))
    last = cg.points[-1]
    assert last.energy_ratio is not None and last.energy_ratio.value == pytest.approx(eight / one)
    assert last.energy_ratio.low is not None and last.energy_ratio.low > 1
    assert last.node_hours is not None
    elapsed = mean(strong, CG, "nodes=8", "elapsed_s")
    assert last.node_hours.mean == pytest.approx(8 * elapsed / 3600)
    assert cg.least_energy is not None and cg.least_energy.choice == Choice(1, 1, 1)
    assert cg.shortest is not None and cg.shortest.choice == Choice(8, 8, 8)


def test_weak_scaling_grows_the_work(weak: Summary) -> None:
    """Seconds rise by 20 % at each doubling: an efficiency of 1/1.2, 1/1.44 … Rates are the job's."""
    cg, ep = build_scaling_curves(weak)
    for point, truth in zip(cg.points[1:], (1 / 1.2, 1 / 1.44, 1 / 1.728), strict=True):
        found = point.efficiency
        assert found is not None and found.low is not None and found.high is not None
        assert found.low < truth < found.high
        assert point.speed_up is not None
        assert point.speed_up.value == pytest.approx(found.value * point.scale)
    assert cg.efficient == Choice(2, 2, 4)  # 69.4 % at 4
    assert cg.shortest is None and cg.least_energy is None
    gustafson = cg.laws[0]
    assert gustafson.serial is None and (gustafson.reason or "").startswith("does not fit")
    one, sixteen = (mean(weak, EP, f"nodes={n}", "mops") for n in (1, 16))
    last = ep.points[-1]
    assert last.speed_up is not None and last.speed_up.value == pytest.approx(sixteen / one)
    assert last.energy_ratio is not None
    joules = [mean(weak, EP, f"nodes={n}", "energy_j") for n in (1, 16)]
    assert last.energy_ratio.value == pytest.approx(joules[1] / joules[0] / 16)


Seconds = Callable[[dict[str, object]], float]


def made(
    tmp_path: Path,
    factors: dict[str, Sequence[object]],
    seconds: Seconds,
    over: Sequence[str],
    repeat: int = 5,
    spread: float = 0.01,
) -> Summary:
    """A study of `app` whose seconds are a function of the condition."""
    maker = StudyMaker("made", factors, {name: levels[0] for name, levels in factors.items()})
    maker.scaling = {"kind": "strong", "over": list(over)}
    chance = random.Random(3)
    conditions: list[dict[str, object]] = [{}]
    for name, levels in factors.items():
        conditions = [{**one, name: level} for one in conditions for level in levels]
    for number in range(1, repeat + 1):
        for condition in conditions:
            run = maker.run("app", {}, condition, number)
            maker.result(run, "seconds", seconds(condition) * chance.gauss(1, spread), "s")
    return summarize(maker.write(tmp_path))


def number(condition: dict[str, object], factor: str) -> float:
    return float(str(condition[factor]))


def only(summary: Summary) -> ScalingCurve:
    (curve,) = build_scaling_curves(summary)
    return curve


def words(summary: Summary) -> str:
    part = build_scaling_section(summary)
    assert part is not None
    return " ".join(part.sentences)


def test_one_scale_is_not_judged(tmp_path: Path) -> None:
    found = made(tmp_path, {"nodes": [4]}, lambda _: 10.0, ["nodes"])
    assert only(found).reason == "only scale 4 has values"
    assert words(found) == "app, seconds: no scaling can be judged: only scale 4 has values."


def test_levels_that_are_no_scales_are_named(tmp_path: Path) -> None:
    def seconds(condition: dict[str, object]) -> float:
        return 10.0 if condition["nodes"] in ("all", 0) else 10 / number(condition, "nodes")

    found = made(tmp_path, {"nodes": ["all", 0, 1, 2]}, seconds, ["nodes"])
    curve = only(found)
    assert [point.scale for point in curve.points] == [1, 2]
    assert curve.omitted == (
        "nodes=all: its level is no number above 0",
        "nodes=0: its level is no number above 0",
    )
    assert [law.reason for law in curve.laws] == [
        "2 scales with values, 3 are needed",
        "2 scales with values, 4 are needed",
    ]


def test_values_of_0_or_below_have_no_ratio(tmp_path: Path) -> None:
    def seconds(condition: dict[str, object]) -> float:
        nodes = number(condition, "nodes")
        return 0.0 if nodes == 2 else 10 / nodes

    curve = only(made(tmp_path, {"nodes": [1, 2, 4]}, seconds, ["nodes"]))
    assert curve.omitted == ("nodes=2: seconds has values of 0 or below",)
    assert [point.scale for point in curve.points] == [1, 4]


def test_superlinear_scaling_is_reported_and_not_cut(tmp_path: Path) -> None:
    found = made(
        tmp_path, {"threads": [2, 4, 8]}, lambda c: 80 / number(c, "threads") ** 1.2, ["threads"]
    )
    curve = only(found)
    last = curve.points[-1]
    assert curve.reference.scale == 2
    assert last.efficiency is not None and last.efficiency.low is not None
    assert last.efficiency.low > 1.2
    assert last.serial_fraction is not None and last.serial_fraction.value < 0
    assert ", which is superlinear." in words(found)
    assert "8 threads against 2: " in words(found)


def test_few_runs_have_ratios_without_an_interval(tmp_path: Path) -> None:
    found = made(tmp_path, {"nodes": [1, 2, 4]}, lambda c: 10 / number(c, "nodes"), ["nodes"], 2)
    last = only(found).points[-1]
    assert last.speed_up is not None and last.speed_up.low is None
    part = build_scaling_section(found)
    assert part is not None and "Energy" not in part.table.headings  # no meter, no column
    assert "(no interval: 2 runs each)" in words(found)
    assert "4 nodes (1 to 4), the largest with values" in words(found)  # nothing is shown


def test_without_an_interval_the_scale_whose_runs_differ_is_named(tmp_path: Path) -> None:
    """HPL on one and on four crowded nodes: the baseline was blamed, which was far from 0."""
    times = {1: [0.0465, 0.059, 0.0453], 4: [0.22, 0.55, 0.89]}
    left = {nodes: iter(values) for nodes, values in times.items()}
    found = made(
        tmp_path, {"nodes": [1, 4]}, lambda c: next(left[int(number(c, "nodes"))]), ["nodes"], 3, 0
    )
    assert "(no interval: the runs at that scale differ too widely)" in words(found)


def test_a_reason_names_the_scale_and_the_reference_by_their_printed_values(tmp_path: Path) -> None:
    maker = StudyMaker("rates", {"nodes": [1, 2, 4]}, {"nodes": 1})
    maker.scaling = {"kind": "weak", "over": ["nodes"]}
    for number, nodes in ((n, nodes) for n in range(1, 6) for nodes in (1, 2, 4)):
        if nodes != 4 or number == 1:
            run = maker.run("app", {}, {"nodes": nodes}, number)
            maker.result(run, "mops", 50.0 * nodes, "Mop/s", "higher")
    found = summarize(maker.write(tmp_path))
    _, two, four = only(found).points
    assert two.reason is not None and four.reason == "1 run"
    assert two.reason.startswith(
        "coarse: all runs print the same value (100, of the reference 50); the resolution is 1,"
    )
    # Nothing is known of the efficiency on 2 nodes, so no scale is the largest with 70 %.
    assert only(found).efficient is None and "at least 70 %" not in words(found)
    assert "(no interval: 1 run)" in words(found)


def test_a_peak_has_the_digits_of_its_interval(tmp_path: Path) -> None:
    def seconds(condition: dict[str, object]) -> float:
        q = number(condition, "threads") / 64
        return 100 * (1 + 0.02 * (q - 1) + 0.002 * q * (q - 1)) / q

    found = made(tmp_path, {"threads": [64 * 2**n for n in range(6)]}, seconds, ["threads"], 12)
    law = only(found).laws[1]
    assert law.peak is not None and law.peak.value == pytest.approx((0.98 / 0.002) ** 0.5, rel=0.05)
    ends = law.peak.value, law.peak.low or 0, law.peak.high or 0
    best, low, high = (round(64 * end) for end in ends)
    assert f"fastest at {best} ({low} to {high})." in words(found)


def test_scales_are_products_and_several_conditions_may_have_one(tmp_path: Path) -> None:
    """2 × 1 and 1 × 2 differ by 20 %: no law of the product alone can fit them."""

    def seconds(condition: dict[str, object]) -> float:
        nodes, tasks = number(condition, "nodes"), number(condition, "tasks_per_node")
        return 100 / nodes / tasks * (1.2 if tasks > 1 else 1.0)

    factors = {"nodes": [1, 2, 4], "tasks_per_node": [1, 2]}
    found = made(tmp_path, factors, seconds, ["nodes", "tasks_per_node"])
    curve = only(found)
    assert [point.scale for point in curve.points] == [1, 2, 2, 4, 4, 8]
    assert curve.points[-1].level == "nodes=4, tasks_per_node=2"
    assert all((law.reason or "").startswith("does not fit") for law in curve.laws)
    assert "scale 8 against 1: " in words(found)


def test_two_references_are_none(tmp_path: Path) -> None:
    factors = {"nodes": [1, 2], "tasks_per_node": [1, 2]}

    def seconds(condition: dict[str, object]) -> float:
        product = number(condition, "nodes") * number(condition, "tasks_per_node")
        return 0.0 if product == 1 else 10 / product

    curve = only(made(tmp_path, factors, seconds, ["nodes", "tasks_per_node"]))
    assert curve.reason is not None and curve.reason.endswith("which is the reference is open")
    assert curve.laws == () and curve.efficient is None


def test_other_factors_have_a_curve_each(tmp_path: Path) -> None:
    factors = {"threads": [1, 2, 4], "size": [100, 200]}
    found = made(tmp_path, factors, lambda c: number(c, "size") / number(c, "threads"), ["threads"])
    assert [curve.others for curve in build_scaling_curves(found)] == ["size=100", "size=200"]
    assert "app (size=200), seconds: 4 threads against 1: " in words(found)


def test_paired_blocks_narrow_the_fit(tmp_path: Path) -> None:
    """12 blocks hold all scales: the law is fitted within them."""
    found = made(
        tmp_path,
        {"nodes": [1, 2, 4, 8]},
        lambda c: 100 * (1 + 0.05 * (number(c, "nodes") - 1)) / number(c, "nodes"),
        ["nodes"],
        12,
    )
    curve = only(found)
    assert curve.laws[0].serial is not None
    found_s = curve.laws[0].serial
    assert found_s.low is not None and found_s.high is not None
    assert found_s.low < 0.05 < found_s.high


def test_documents_tables_and_figures_have_the_same_numbers(strong: Summary) -> None:
    curves = build_scaling_curves(strong)
    curve = scaling_document(curves[0])
    assert curve["over"] == ["nodes"] and curve["points"][0]["speed_up"]["value"] == 1
    assert curve["largest_efficient"]["value"] == 8
    tables = {relation.name: relation for relation in build_relations(strong, [])}
    rows = [
        dict(zip(tables["scaling"].columns, row, strict=True)) for row in tables["scaling"].rows
    ]
    assert [row["scale"] for row in rows] == [1, 2, 4, 8, 1, 2, 4, 8, 16]
    assert rows[3]["efficiency_value"] == curve["points"][3]["efficiency"]["value"]
    assert len(tables["scaling_laws"].rows) == 4 and len(tables["optima"].rows) == 4
    assert "\\caption{Scaling: " in build_latex_tables(strong)["scaling"]
    assert "\nscaling:\n  npb kernel=cg, seconds: 8 nodes against 1: " in format_summary(strong, [])
    drawn = [draw() for draw in list_scaling_draws(strong)]
    assert [one.name for one in drawn if one] == [
        "scaling-npb-kernel-cg-seconds",
        "scaling-npb-kernel-ep-mops",
    ]
    figure = drawn[0]
    assert figure is not None
    of = dict(zip(figure.columns, figure.rows[3], strict=True))
    assert (of["scale"], of["efficiency"]) == (8, rows[3]["efficiency_value"])


def test_without_scaling_nothing_is_said(demo_summary: Summary) -> None:
    assert build_scaling_curves(demo_summary) == [] and build_scaling_section(demo_summary) is None
    assert find_optima(demo_summary) == []
    assert "scaling:" not in format_summary(demo_summary, [])


def numeric(tmp_path: Path, best: dict[str, float], energy: dict[str, float]) -> Summary:
    """Threads 1, 2, 4, 8 without [study] scaling, seconds and joules by level."""
    maker = StudyMaker("numeric", {"threads": [1, 2, 4, 8]}, {"threads": 1})
    chance = random.Random(4)
    for repeat in range(1, 9):
        for threads in (1, 2, 4, 8):
            run = maker.run("app", {}, {"threads": threads}, repeat)
            maker.result(run, "seconds", best[str(threads)] * chance.gauss(1, 0.02), "s")
            maker.record(run, "n1", 10.0, energy_j=energy[str(threads)] * chance.gauss(1, 0.02))
    return summarize(maker.write(tmp_path))


def test_least_joules_and_shortest_time_of_a_numeric_factor(tmp_path: Path) -> None:
    seconds = {"1": 100.0, "2": 60.0, "4": 40.0, "8": 30.0}
    joules = {"1": 1200.0, "2": 1001.0, "4": 1000.0, "8": 1300.0}
    found = find_numeric_optima(numeric(tmp_path, seconds, joules))
    assert [(one.metric, one.choice.value, one.allowed) for one in found] == [
        ("seconds", 8.0, (8.0,)),
        ("energy_j", found[1].choice.value, (2.0, 4.0)),
    ]
    (sentence,) = describe_numeric_optima(found)
    best = f"{found[1].choice.value:g}"
    assert sentence == (
        "app, seconds and energy_j over threads: shortest at 8 threads, the largest with values; "
        f"least joules at {best} threads (2 to 4)."
    )


def test_an_optimum_that_a_slope_tells_is_left_to_it(tmp_path: Path) -> None:
    falling = {"1": 100.0, "2": 60.0, "4": 40.0, "8": 30.0}
    assert find_numeric_optima(numeric(tmp_path, falling, falling)) == []
