"""What a study will cost, by hand-made earlier runs: node time, core-hours, joules, the end."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from steelyard.analysis.summary.earlier_runs import EarlierRuns, MeasuredCost, make_keys
from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.schedulers.available_nodes import AvailableNodes, Node
from steelyard.wrappers.study import plan, study
from steelyard.wrappers.study.folder import StudyDir
from steelyard.wrappers.submit import cost_estimate, statistical_power, study_preview

TEXT = """\
[study]
repeat = 4
{head}
[job]
{job}
[factors]
n = [1, 2]
[[benchmark]]
use = "app"
command = "x {{n}}"
"""


def parsed(head: str = "", job: str = "") -> study.Study:
    return study.parse_study(TEXT.format(head=head, job=job).encode(), Path("s.toml"))


def place(nodes: int = 4, idle: int | None = 4, **more: Any) -> AvailableNodes:
    one = (Node(f"n{i}", idle=None if idle is None else i < idle, cores=8) for i in range(nodes))
    return AvailableNodes("partition main", tuple(one), **more)


def earlier_of(found: study.Study, **seconds: list[float]) -> EarlierRuns:
    """Return runs of n = 1 and n = 2."""
    by_key = {}
    for run in plan.make_plan(found):
        key = make_keys(run.benchmark, run.parameters, run.condition)[0]
        values = seconds[f"n{run.condition['n']}"]
        by_key[key] = MeasuredCost(values, [100.0] * len(values), {"seconds": {key: values}})
    return EarlierRuns(by_key, ("before",))


def estimate(
    found: study.Study, earlier: EarlierRuns, where: AvailableNodes, **more: Any
) -> cost_estimate.Cost:
    return cost_estimate.estimate_cost(
        found, plan.make_plan(found), [], earlier, lambda _: where, **more
    )


def test_core_hours_joules_and_the_end_are_those_of_earlier_runs() -> None:
    found = parsed(job='time_limit = "01:00:00"')
    earlier = earlier_of(found, n1=[900.0, 900.0], n2=[1800.0])
    told = estimate(found, earlier, place())
    assert told.expected_s == 4 * 900 + 4 * 1800
    assert told.core_hours == pytest.approx(4 * 8 * 0.25 + 4 * 8 * 0.5)
    assert told.core_hours_at_most == pytest.approx(8 * 8 * 1.0)
    assert told.energy_j == 800.0
    assert told.earlier == {"the same condition": 8}
    # On four nodes: the area is 2700 s; the last run of 1800 s begins at 900 s or 1800 s.
    assert told.end_s in (2700.0, 3600.0)
    alone = estimate(found, earlier, place(idle=1))
    assert (alone.end_s, alone.end_all_s) == (4 * 900 + 4 * 1800, told.end_s)


def test_at_once_and_this_machine_are_one_after_another() -> None:
    found = parsed(job="at_once = 1\nnodes = 2\nwarm_up = 1")
    earlier = earlier_of(found, n1=[10.0], n2=[20.0])
    told = estimate(found, earlier, place())
    assert told.end_s == 2 * (4 * 10 + 4 * 20)
    assert told.core_hours == pytest.approx(2 * 8 * told.end_s / 3600)
    here = estimate(found, earlier, place(1, 1), runs_here=True)
    assert here.end_s == told.end_s
    assert here.core_hours == pytest.approx(8 * told.end_s / 3600)


def test_shared_nodes_cost_the_cores_of_their_tasks() -> None:
    found = parsed(job="exclusive = false\ntasks_per_node = 3")
    told = estimate(found, earlier_of(found, n1=[3600.0], n2=[3600.0]), place())
    assert told.core_hours == pytest.approx(8 * 3)


def test_joules_by_power_where_none_were_measured() -> None:
    found = parsed(job="nodes = 2")
    earlier = earlier_of(found, n1=[10.0], n2=[20.0])
    for one in earlier.by_key.values():
        one.energy_j.clear()
    assert estimate(found, earlier, place()).energy_j is None
    assert "--node-power" in estimate(found, earlier, place()).missing["energy_j"]
    told = estimate(found, earlier, place(), node_watts=200.0)
    assert told.energy_j == 200.0 * 2 * (4 * 10 + 4 * 20)


def test_what_is_not_known_has_a_reason() -> None:
    told = estimate(parsed(), EarlierRuns({}, ()), place(idle=None))
    for name in ("expected_s", "core_hours", "core_hours_at_most", "energy_j", "end_s"):
        assert getattr(told, name) is None
        assert told.missing[name]
    assert told.bound is None


@pytest.mark.parametrize(
    ("limit", "job", "fault"),
    [
        (63.9, 'time_limit = "01:00:00"', "64 core-hours are possible by [job] time_limit"),
        (64, 'time_limit = "01:00:00"', None),
        (64, "", "what the runs may take cannot be estimated: no [job] time_limit"),
    ],
)
def test_max_core_hours_is_kept(limit: float, job: str, fault: str | None) -> None:
    found = parsed(f"max_core_hours = {limit}", job)
    told = estimate(found, EarlierRuns({}, ()), place())
    if fault is None:
        cost_estimate.check_core_hours(found, told)
        return
    with pytest.raises(UsageError) as caught:
        cost_estimate.check_core_hours(found, told)
    assert fault in str(caught.value)
    assert str(caught.value).startswith(f"s.toml: study.max_core_hours = {limit:g}: ")


def test_what_was_used_counts_and_what_is_expected_goes_before_the_time_limit() -> None:
    found = parsed("max_core_hours = 10", 'time_limit = "01:00:00"')
    runs = plan.make_plan(found)
    earlier = earlier_of(found, n1=[900.0], n2=[900.0])
    told = cost_estimate.estimate_cost(
        found, runs[4:], [(r, 900.0) for r in runs[:4]], earlier, lambda _: place()
    )
    assert (told.core_hours, told.core_hours_used) == (8.0, 8.0)
    with pytest.raises(UsageError, match="16 core-hours are expected, 8 of them used"):
        cost_estimate.check_core_hours(found, told)


@pytest.mark.parametrize("value", ["0", "-1", '"5"', "true", "inf", "nan"])
def test_a_limit_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(UsageError, match="study.max_core_hours = .*: allowed is a number above 0"):
        parsed(f"max_core_hours = {value}")


def test_the_difference_that_is_seen_comes_from_the_spread_of_earlier_runs() -> None:
    found = parsed("blocks = 4")
    runs = plan.make_plan(found)
    earlier = earlier_of(found, n1=[99.0, 100.0, 101.0], n2=[1.0])
    (one,) = statistical_power.find_detectable_differences(found, runs, earlier)
    assert (one.variant, one.figure, one.runs) == ("app", "seconds", 3)
    assert one.spread == pytest.approx(0.01)
    # One comparison of 4 runs with 4: 2.3808 standard deviations (statsmodels 0.14.6).
    assert one.seen == pytest.approx(0.023808, rel=1e-3)
    guesses = statistical_power.find_detectable_differences(found, runs, EarlierRuns({}, ()))
    assert [guess.runs for guess in guesses] == [0, 0, 0]


def test_each_main_figure_of_each_condition_is_a_comparison() -> None:
    """Holm's first step divides by all of them, as the report does."""
    found = parsed("blocks = 4")
    runs = plan.make_plan(found)
    earlier = earlier_of(found, n1=[99.0, 100.0, 101.0], n2=[1.0])
    for one in earlier.by_key.values():
        one.figures["rate"] = {("other",): [1.0, 1.1]}
    assert statistical_power.count_comparisons(found, runs, earlier) == 2
    assert statistical_power.significance_level(found, runs, earlier) == pytest.approx(0.025)
    assert [
        one.figure for one in statistical_power.find_detectable_differences(found, runs, earlier)
    ] == ["seconds", "rate"]
    assert (
        statistical_power.count_comparisons(found, runs, EarlierRuns({}, ())) == 1
    )  # what app describes: seconds


def state(run: Any, name: str, elapsed_s: float | None) -> Any:
    return SimpleNamespace(run=run, state=name, elapsed_s=elapsed_s)


def used_of(
    monkeypatch: pytest.MonkeyPatch, states: Any, missing: Any, accounted: dict[str, float]
) -> cost_estimate.Cost:
    """Runs of 360 s on nodes of 8 cores, after three warm-ups and between two pauses of 60 s."""
    found = parsed(job="warm_up = 3\nidle_s = 60")
    monkeypatch.setattr(study_preview, "make_node_lookup", lambda *_: lambda _: place())
    monkeypatch.setattr(study_preview.earlier_runs, "job_seconds", lambda _: accounted)
    runs = plan.make_plan(found)
    by_id = {run.run_id: state(run, *states[n]) for n, run in enumerate(runs) if n in states}
    again = [run for n, run in enumerate(runs) if n in missing]
    return study_preview.estimate_study_cost(
        found, runs, by_id, again, SimpleNamespace(runs_here=False),  # type: ignore[arg-type]
        StudyDir(Path("none")), earlier_of(found, n1=[360.0], n2=[360.0]),
    )  # fmt: skip


JOB_H = 8 * (4 * 360 + 120) / 3600  # core-hours of a job


def test_a_run_that_ended_has_used_what_one_like_it_will_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = used_of(monkeypatch, {0: ("completed", 360.0)}, (), {})
    assert (told.core_hours_used, told.core_hours) == pytest.approx((JOB_H, 7 * JOB_H))


def test_the_accounting_says_what_jobs_took(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a run that was killed and left no result."""
    ids = [run.run_id for run in plan.make_plan(parsed())]
    states = {0: ("completed", 360.0), 1: ("timeout", None)}
    told = used_of(monkeypatch, states, (), {ids[0]: 1700.0, ids[1]: 3600.0})
    assert told.core_hours_used == pytest.approx(8 * (1700 + 3600) / 3600)
    assert told.core_hours == pytest.approx(6 * JOB_H)


def test_a_run_that_is_submitted_again_is_used_and_expected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = used_of(monkeypatch, {0: ("failed", 360.0)}, (0,), {})
    assert (told.core_hours_used, told.core_hours) == pytest.approx((JOB_H, 8 * JOB_H))


SCALED = """\
[study]
repeat = 3
[job]
time_limit = "01:00:00"
exclusive = false
cpus_per_task = 2
[factors]
nodes = [4, 1]
tasks_per_node = [2]
[[benchmark]]
use = "npb"
kernel = ["ep", "cg"]
"""


def test_core_hours_are_told_for_each_scale() -> None:
    """Two kernels, three repeats of an hour at most, of tasks x processors on each node."""
    found = study.parse_study(SCALED.encode(), Path("s.toml"))
    told = estimate(found, EarlierRuns({}, ()), place())
    assert [
        (one.levels, one.nodes, one.runs, one.core_hours, one.core_hours_at_most)
        for one in told.scales
    ] == [
        ({"nodes": 1, "tasks_per_node": 2}, 1, 6, None, 6 * 1 * 4.0),
        ({"nodes": 4, "tasks_per_node": 2}, 4, 6, None, 6 * 4 * 4.0),
    ]
    assert told.core_hours_at_most == sum(one.core_hours_at_most or 0 for one in told.scales)
    assert (told.place, told.known_nodes, told.node_cores) == ("partition main", 4, 8)


def test_a_scale_may_be_over_any_factor() -> None:
    scaled = parsed(head='scaling = { kind = "strong", over = "n" }', job='time_limit = "01:00:00"')
    told = estimate(scaled, EarlierRuns({}, ()), place())
    assert [(one.levels, one.runs) for one in told.scales] == [({"n": 1}, 4), ({"n": 2}, 4)]
    assert estimate(parsed(), EarlierRuns({}, ()), place()).scales == []
