"""The order of several commands' runs, what is done around each, and when it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from steelyard.analysis.stats.basics import mean_interval
from steelyard.analysis.stats.planning import FIRST_LOOK
from steelyard.wrappers.run import comparisons, results
from steelyard.wrappers.run.measurement import Measurement
from steelyard.wrappers.run.measurement_rounds import Course, Session
from steelyard.wrappers.run.results import CommandResults, RunResults
from steelyard.wrappers.run.run_plan import Hooks, Plan, make_command

NO_HOOKS = Hooks()


def one(number: int, seconds: float | None, code: int = 0) -> Measurement:
    return Measurement(number, code, None, {"elapsed": seconds}, {})


def course(
    plan: Plan,
    count: int = 3,
    hooks: Hooks = NO_HOOKS,
    measure: Callable[[int, int, bool], Measurement] = lambda place, number, _: one(
        number, 1.0 + place
    ),
) -> Course:
    commands = [make_command(["true", str(place)]) for place in range(count)]
    return Session(commands, [hooks] * count, plan, measure, lambda _: None).run()


def test_every_round_has_each_command_once_in_a_drawn_order() -> None:
    found = course(Plan(repeat=20)).order
    rounds = [tuple(found[place : place + 3]) for place in range(0, 60, 3)]
    assert {tuple(sorted(one)) for one in rounds} == {(0, 1, 2)}
    assert len(set(rounds)) > 3  # of 6
    assert course(Plan(repeat=20)).order == found


def test_blocks_are_one_command_after_the_other() -> None:
    assert course(Plan(repeat=2, interleaved=False)).order == [0, 0, 1, 1, 2, 2]


def drawn(spread: float) -> Callable[[int, int, bool], Measurement]:
    """Return measurements of 1 s, `spread` more or less in turn."""
    return lambda _, number, __: one(number, 1 + spread * (-1) ** number)


def test_until_stops_at_the_first_look_that_is_narrow_enough() -> None:
    found = course(Plan(until=0.02), 1, measure=drawn(0.1))
    values = [run.values["elapsed"] or 0.0 for run in found.runs[0]]
    assert found.enough is True
    assert len(values) > FIRST_LOOK
    wide, narrow = mean_interval(values[:-2], 0.96), mean_interval(values, 0.96)
    assert (narrow.half_width or 9) <= 0.02 * narrow.mean < (wide.half_width or 0)


@pytest.mark.parametrize(("most", "seconds", "runs"), [(30, 600.0, 30), (1000, 1e-9, 1)])
def test_until_has_limits(most: int, seconds: float, runs: int) -> None:
    plan = Plan(until=0.001, max_repeat=most, max_time_s=seconds)
    found = course(plan, 2, measure=drawn(0.1))
    assert found.enough is False
    assert [len(one) for one in found.runs] == [runs, runs]


def of(values: Sequence[float], **more: int) -> list[Measurement]:
    return [one(number, value, **more) for number, value in enumerate(values, 1)]


def test_rounds_are_compared_as_pairs_since_drift_hits_both() -> None:
    """The second command takes twice as long in every round, on a machine that becomes ten times slower."""
    base = [1.0 + number for number in range(12)]
    runs = [of([2 * value * (1.001 if n % 2 else 0.999) for n, value in enumerate(base)]), of(base)]
    (paired,) = comparisons.compare_commands(runs, 1, in_rounds=True)
    (apart,) = comparisons.compare_commands(runs, 1, in_rounds=False)
    assert paired.ratio == apart.ratio == pytest.approx(2, rel=1e-3)
    assert paired.low is not None and paired.high is not None and apart.low is not None
    assert 1.99 < paired.low < 2 < paired.high < 2.01
    assert 0 <= apart.low < 1.5
    assert paired.is_shown
    assert "paired in 12 rounds" in paired.design


def test_a_failed_run_takes_only_its_own_round_out() -> None:
    """The result equals that of a session without that round, to the last digit."""
    base = [1.0 + number for number in range(12)]
    ours = [2 * value * (1.001 if n % 2 else 0.999) for n, value in enumerate(base)]
    broken = of(ours)
    broken[4] = one(5, None, code=1)
    (found,) = comparisons.compare_commands([broken, of(base)], 1, in_rounds=True)
    (without,) = comparisons.compare_commands(
        [of(ours[:4] + ours[5:]), of(base[:4] + base[5:])], 1, in_rounds=True
    )
    assert found == replace(without, design="paired in 11 of 12 rounds")


def test_each_comparison_has_its_own_design(capsys: pytest.CaptureFixture[str]) -> None:
    """A command that failed in 3 of 12 rounds has too few pairs; the others are still paired."""
    few = [one(n, 4.0 + n / 100, code=int(n > 9)) for n in range(1, 13)]
    runs = [of([2 + n / 100 for n in range(12)]), of([1 + n / 99 for n in range(12)]), few]
    commands = [
        CommandResults(make_command([name]), own, (), (), None)
        for name, own in zip(("true", "false", "echo"), runs, strict=True)
    ]
    names = ("true", "false", "echo")
    results.print_comparisons(RunResults(commands, Plan(12), Course(runs), names=names))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].endswith(" than true, paired in 12 rounds")
    assert lines[2].endswith(" than echo, 9 and 12 runs")
    assert lines[3] == "  (95 %; runs were interleaved, in random order)"
    results.print_comparisons(RunResults(commands[:2], Plan(12), Course(runs[:2]), names=names[:2]))
    alone = capsys.readouterr().out.splitlines()
    assert alone[1].endswith(" than true")
    assert alone[2].startswith("  (95 %, paired in 12 rounds; ")


@pytest.mark.parametrize(
    ("commands", "sessions", "least", "most"),
    [(2, 1500, 0.035, 0.065), (5, 800, 0.025, 0.065), (20, 400, 0.005, 0.065)],
)
def test_alike_commands_seem_to_differ_in_one_call_of_twenty(
    commands: int, sessions: int, least: float, most: float
) -> None:
    """10 rounds, a spread of 5 %: uncorrected 86 % of calls with 20 commands print a difference.

    Limits: 5 % and what chance leaves; of more than two commands fewer, by Dunn's inequality.
    """
    chance, hits = np.random.default_rng(1), 0
    for _ in range(sessions):
        runs = [of(chance.normal(1, 0.05, 10).tolist()) for _ in range(commands)]
        fastest = comparisons.find_fastest(runs)
        assert fastest is not None
        hits += any(
            one.is_shown for one in comparisons.compare_commands(runs, fastest, in_rounds=True)
        )
    assert least * sessions <= hits <= most * sessions


def test_two_runs_have_no_interval_and_say_why() -> None:
    (found,) = comparisons.compare_commands([of([1.0, 2.0]), of([3.0, 4.0])], 0, in_rounds=True)
    assert (found.low, found.high, found.reason) == (None, None, "2 runs each")
    assert not found.is_shown


def test_a_slow_first_run_and_those_that_stand_apart_are_told() -> None:
    quiet = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.01]
    assert comparisons.list_notes(of(quiet), warmed_up=False) == []
    (first,) = comparisons.list_notes(of([9.0, *quiet]), warmed_up=False)
    assert first == "the first run was slow (9 s, the median 1 s): --warmup leaves it out"
    (later,) = comparisons.list_notes(of([*quiet, 9.0]), warmed_up=False)
    assert later == "1 of 8 runs stands apart (run 8: 9 s): was the machine busy?"
