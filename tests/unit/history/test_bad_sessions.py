"""Sessions that are not as they should be: what is used, and what is told of the others."""

from __future__ import annotations

from steelyard.analysis.history.history import find_regressions
from steelyard.analysis.report.history_text import describe_history

from .made_sessions import FIRST, Plan, history_of

SESSIONS, STEP = 20, 12


def slower(number: int, node: str) -> float:
    return 10.4 if number >= STEP else 10.0


def test_one_session_has_no_change_and_the_reason() -> None:
    found = history_of(Plan(), 1)
    assert found.events == ()
    (series,) = found.series
    assert series.course.level is None
    assert any("1 session" in text for text in describe_history(found))


def test_a_session_that_cannot_be_read_is_left_out_with_its_reason() -> None:
    plan = Plan(seconds=slower, reason=lambda number: "it is damaged" if number == 5 else None)
    found = history_of(plan, SESSIONS)
    assert [(session.name, reason) for session, reason in found.excluded] == [
        ("2026-11-06", "it is damaged")
    ]
    assert len(found.sessions) == SESSIONS - 1
    assert found.sessions[found.events[0].index].name == "2026-11-13"
    assert "Session 2026-11-06 is not used: it is damaged." in describe_history(found)


def test_a_session_of_another_study_is_left_out() -> None:
    plan = Plan(study=lambda number: "weekly" if number == 3 else "nightly")
    found = history_of(plan, SESSIONS)
    ((session, reason),) = found.excluded
    assert session.number == 4
    assert "weekly" in reason and "nightly" in reason


def test_a_clock_that_was_set_back_does_not_change_the_order() -> None:
    plan = Plan(
        seconds=slower,
        began=lambda number: FIRST.timestamp() + 86400 * (number if number != 7 else 2),
    )
    found = history_of(plan, SESSIONS)
    assert [session.number for session in found.sessions] == list(range(1, SESSIONS + 1))
    told = [text for text in describe_history(found) if "clock" in text]
    assert len(told) == 1
    assert "session 2026-11-08" in told[0]


def test_sessions_with_nothing_but_failed_runs_have_no_values_and_are_named() -> None:
    plan = Plan(seconds=slower, nodes=lambda number: () if number in (4, 5) else ("n1", "n2"))
    found = history_of(plan, SESSIONS)
    assert found.events[0].index == STEP
    told = [text for text in describe_history(found) if "Without any value" in text]
    assert told == ["Without any value of a main figure: sessions 2026-11-05 and 2026-11-06."]


def test_nothing_but_failed_runs_anywhere() -> None:
    found = history_of(Plan(nodes=lambda number: ()), SESSIONS)
    assert found.events == ()
    assert any("not known" in text for text in describe_history(found))


def test_a_level_that_was_removed_is_told_and_fails_nothing() -> None:
    plan = Plan(
        seconds=lambda number, node: 12.0 if number >= 8 else 10.0,
        levels=lambda number: (1,) if number >= 15 else (1, 2),
    )
    found = history_of(plan, SESSIONS)
    assert [one.label for one in found.series if one.is_current] == ["clients=1"]
    assert any(
        text.startswith("Not in the latest session: app with 2 clients")
        for text in describe_history(found)
    )
    assert [one.series.label for one in find_regressions(found, 0.03)] == ["clients=1"]


def test_values_in_another_unit_are_not_mixed_in() -> None:
    plan = Plan(
        seconds=lambda number, node: 10_000.0 if number < 6 else 10.0,
        unit=lambda number: "ms" if number < 6 else "s",
    )
    found = history_of(plan, SESSIONS)
    assert found.events == ()
    (series,) = found.series
    assert series.other_units == tuple(range(6))
    assert series.metric.unit == "s"
    assert any("another unit than s" in text for text in describe_history(found))


def test_sessions_that_were_collected_too_early_are_named() -> None:
    texts = describe_history(history_of(Plan(waiting=2), 3))
    assert any(text.startswith("Collected before all runs had ended") for text in texts)


def test_a_regression_counts_as_long_as_the_last_sessions_show_it() -> None:
    worse = history_of(Plan(seconds=slower), SESSIONS)
    (one,) = find_regressions(worse, 0.03)
    assert one.series.variant == "app"
    assert find_regressions(worse, 0.05) == []
    assert find_regressions(worse, 0.03, since=STEP) == [one]
    assert find_regressions(worse, 0.03, since=STEP + 1) == []
    healed = Plan(seconds=lambda number, node: 10.4 if 10 <= number < 20 else 10.0)
    found = history_of(healed, 30)
    assert len(found.events) == 2
    assert find_regressions(found, 0.03) == []


def test_a_figure_of_which_more_is_better_fails_on_less() -> None:
    plan = Plan(seconds=slower, better="higher")
    assert find_regressions(history_of(plan, SESSIONS), 0.03) == []
    plan = Plan(seconds=lambda number, node: 9.6 if number >= STEP else 10.0, better="higher")
    found = history_of(plan, SESSIONS)
    assert len(find_regressions(found, 0.03)) == 1
    assert find_regressions(found, 0.05) == []
    plan = Plan(seconds=slower, better=None)
    assert find_regressions(history_of(plan, SESSIONS), 0.03) == []
