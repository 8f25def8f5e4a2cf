"""A history's sentences, JSON and JUnit: word for word."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from xml.etree import ElementTree

import pytest

from steelyard.analysis.history.history import NodeShare, Series, find_regressions
from steelyard.analysis.report.history_document import history_document, junit_text
from steelyard.analysis.report.history_text import (
    build_level_rows,
    describe_change,
    describe_drift,
    describe_history,
    describe_size,
)
from steelyard.analysis.stats.change_points import Change, Drift
from steelyard.analysis.stats.overhead import Overhead
from steelyard.facts import json_fields

from ..history.made_sessions import NODES, STATE, Plan, history_of

SESSIONS, STEP = 20, 13  # from 2026-11-14 on


def slower(number: int, node: str) -> float:
    return 10.4 if number >= STEP else 10.0


def new_kernel(number: int, node: str) -> Mapping[str, str | None]:
    return STATE | {"kernel.release": f"6.1.0-{31 if number >= STEP else 30}"}


def event_of(plan: Plan, number: int = SESSIONS) -> str:
    """The first sentence's beginning up to its interval is left to other tests."""
    text = describe_history(history_of(plan, number))[0]
    return text.partition(" %) ")[2] or text


def test_a_change_and_its_tag() -> None:
    text = describe_history(history_of(Plan(seconds=slower, state=new_kernel), SESSIONS))[0]
    assert text.startswith("app takes ")
    assert text.partition(" % longer (")[2]
    assert text.endswith(
        " since 14 November 2026; on that day 4 of 4 nodes went from kernel 6.1.0-30 to 6.1.0-31. "
        "Nothing else changed."
    )


def test_a_change_with_nothing_else() -> None:
    assert event_of(Plan(seconds=slower)) == (
        "since 14 November 2026; on that day nothing else changed on 4 nodes."
    )


def test_a_change_of_one_node() -> None:
    plan = Plan(seconds=lambda number, node: 13.0 if number >= STEP and node == "n3" else 10.0)
    assert event_of(plan).startswith("on n3 alone since 14 November 2026; ")


def test_a_tag_of_one_node() -> None:
    plan = Plan(
        seconds=slower, state=lambda n, node: new_kernel(n, node) if node == "n2" else STATE
    )
    assert "on that day n2 went from kernel 6.1.0-30 to 6.1.0-31. Nothing else" in event_of(plan)


def test_another_program_is_no_change_of_the_machine() -> None:
    plan = Plan(
        seconds=slower,
        program=lambda n: {"program /opt/app": "bb22" if n >= STEP else "aa11", "tasks": "4"},
    )
    assert event_of(plan) == (
        "since 14 November 2026; on that day what was measured changed, not the machine: app went from "
        "program /opt/app, SHA-256 aa11 to bb22. Nothing else changed."
    )


def test_both_changed() -> None:
    plan = Plan(
        seconds=slower, state=new_kernel,
        program=lambda n: {"program /opt/app": "bb22" if n >= STEP else "aa11"},
    )  # fmt: skip
    assert "to 6.1.0-31. What was measured changed, too: app went" in event_of(plan)


def test_a_session_before_it() -> None:
    plan = Plan(seconds=slower, state=lambda n, node: new_kernel(n + 1, node))
    assert event_of(plan) == (
        "since 14 November 2026; on that day nothing else changed on 4 nodes. One session before, "
        "13 November 2026, 4 of 4 nodes went from kernel 6.1.0-30 to 6.1.0-31."
    )


def test_sessions_that_are_no_dates_are_called_by_their_names() -> None:
    plan = Plan(seconds=slower, name=lambda n: f"release-{n}")
    assert event_of(plan).startswith(
        "since session release-13 (14 November 2026); in that session nothing else changed"
    )


def test_many_figures_of_one_session_are_one_sentence() -> None:
    plan = Plan(seconds=slower, variants=[f"app n={n}" for n in range(6)], state=new_kernel)
    text = describe_history(history_of(plan, SESSIONS))[0]
    assert text.startswith("Since 14 November 2026: app n=")
    assert text.count("takes") == 4
    assert "; 2 more figures changed. On that day 4 of 4 nodes went from kernel" in text


def test_conditions_are_named_by_what_varies() -> None:
    plan = Plan(seconds=slower, levels=lambda n: (1, 2), noise=0.003)
    text = describe_history(history_of(plan, SESSIONS))[0]
    assert "app with 1 client takes" in text
    assert "app with 2 clients takes" in text


def test_nothing_found_names_what_would_have_been() -> None:
    texts = describe_history(history_of(Plan(noise=0.01), SESSIONS))
    assert texts[0].startswith(
        "No change was found: 1 main figure in 20 sessions. No change above "
    )
    assert texts[0].endswith(" % would have been missed (9 in 10, five sessions after it).")


def test_a_slow_drift_is_told_as_that_and_fails() -> None:
    found = history_of(Plan(seconds=lambda n, node: 10.0 * (1 + 0.002 * n)), 60)
    text = describe_history(found)[0]
    assert text.startswith(
        "app changes slowly, without a step: compared with 1 November 2026, it now takes 11"
    )
    assert text.endswith(" %).")
    (one,) = find_regressions(found, 0.03)
    assert one in found.drifts
    root = ElementTree.fromstring(junit_text(found, [one]))
    assert root[0][0][0].get("message") == text
    assert history_document(found, [one])["series"][0]["drift"]["since"] == "2026-11-01"


@pytest.mark.parametrize(
    ("better", "low", "words"),
    [
        ("lower", 0.99, "takes 1 % less to 9 % more time"),
        ("lower", 1.01, "takes 4.0 % longer (1.0 to 9.0 %)"),
        (None, 0.99, "has 1 % lower to 9 % higher seconds"),
    ],
)
def test_a_change_whose_interval_holds_0_claims_no_direction(
    better: str | None, low: float, words: str
) -> None:
    found = history_of(Plan(seconds=slower, better=better), SESSIONS)
    (one,) = found.events[0].changes
    assert isinstance(one.change, Change)
    change = dataclasses.replace(one.change, ratio=1.04, low=low, high=1.09)
    assert describe_size(dataclasses.replace(one, change=change)) == words
    drift = Drift(0, 1.04, low, 1.09, 0.001)
    text = describe_drift(found, dataclasses.replace(one, change=drift))
    assert text.endswith(f": compared with 1 November 2026, it now {words}.")


def test_any_size_of_a_drift_makes_a_sentence() -> None:
    """Only a comparative could be followed by `than on 1 November 2026`."""
    found = history_of(Plan(seconds=slower), SESSIONS)
    (one,) = found.events[0].changes
    metric = dataclasses.replace(one.series.metric, name="score", unit=None, better="higher")
    score = dataclasses.replace(one.series, metric=metric)
    doubled, unknown = Drift(0, 2.5, 2.0, 3.0, 0.001), Drift(0, None, None, None, 0.001)

    def describe(drift: Drift, series: Series = one.series) -> str:
        text = describe_drift(found, dataclasses.replace(one, series=series, change=drift))
        return text.removeprefix("app changes slowly, without a step")

    since = ": compared with 1 November 2026, it now "
    assert describe(doubled) == f"{since}takes 2.5 times as long (2.0 to 3.0 times)."
    risen = describe(Drift(0, 1.04, 1.01, 1.09, 0.001), score)
    assert risen == f"{since}has 4.0 % higher score (1.0 to 9.0 %), which is better."
    assert describe(unknown) == ", since 1 November 2026, when its level may have been 0 or below."


def test_a_node_whose_interval_holds_0_has_no_direction() -> None:
    found = history_of(Plan(seconds=slower), SESSIONS)
    (one,) = found.events[0].changes
    own, others = (Overhead(0.04, low, 0.09, 3, 3, "Fieller") for low in (-0.01, -0.02))
    text = describe_change(found, dataclasses.replace(one, node=NodeShare("n3", own, others)))
    assert text == "app takes 1 % less to 9 % more time on n3 alone"


def test_a_negative_level_that_falls_is_not_called_higher() -> None:
    """The ratio of −6 to −5 is 1.2."""
    plan = Plan(seconds=lambda n, node: -6.0 if n >= STEP else -5.0, better="higher")
    found = history_of(plan, SESSIONS)
    assert describe_history(found)[0].startswith("app went from −5")
    assert find_regressions(found, 0.03) == []
    lower = history_of(dataclasses.replace(plan, better="lower"), SESSIONS)
    assert find_regressions(lower, 0.03) == []


def test_a_figure_is_listed_since_the_first_session_of_its_level() -> None:
    """Before it the figure had another unit, and so no value."""
    plan = Plan(unit=lambda n: "s" if n >= 9 else "ms")
    found = history_of(plan, SESSIONS)
    (row,) = build_level_rows(found)
    assert row[3] == "2026-11-10"
    assert history_document(found, [])["series"][0]["since"] == row[3]
    stepped = history_of(Plan(seconds=slower), SESSIONS)
    assert build_level_rows(stepped)[0][3] == "2026-11-14"


def test_a_level_of_0_before_has_no_ratio_and_fails_nothing() -> None:
    found = history_of(Plan(seconds=lambda n, node: 5.0 if n >= STEP else 0.0), SESSIONS)
    assert describe_history(found)[0].startswith("app went from 0 s to ")
    assert find_regressions(found, 0.03) == []


def test_a_single_odd_session_is_told_as_an_outlier() -> None:
    texts = describe_history(history_of(Plan(seconds=lambda n, node: 14.0 if n == 9 else 10.0), 30))
    assert texts[0].startswith("No change was found")
    assert "Outliers in app, no change: session 2026-11-10." in texts


def test_in_few_sessions_no_change_is_looked_for() -> None:
    """A step of 4 % in the last two of seven is not denied."""
    plan = Plan(seconds=lambda n, node: 10.4 if n >= 5 else 10.0)
    assert describe_history(history_of(plan, 7))[0] == (
        "No change was looked for: 1 main figure in 7 sessions; "
        "changes are looked for from 8 sessions on."
    )


def test_figures_of_unlike_noise_are_named_with_what_would_have_been_missed() -> None:
    plan = Plan(seconds=lambda n, node: 10.0, variants=("quiet", "loud"))
    quiet, loud = history_of(plan, SESSIONS).series
    found = history_of(plan, SESSIONS)
    noisy = dataclasses.replace(
        loud, course=dataclasses.replace(loud.course, detectable=0.2), variant="loud"
    )
    calm = dataclasses.replace(quiet, course=dataclasses.replace(quiet.course, detectable=0.011))
    text = describe_history(dataclasses.replace(found, series=(calm, noisy), events=(), drifts=()))[
        0
    ]
    assert text.endswith(
        "No change above 1.1 % in quiet, the steadiest figure, and above 20 % in loud, the noisiest, "
        "would have been missed (9 in 10, five sessions after it)."
    )


def test_what_no_side_has_recorded_is_named() -> None:
    plan = Plan(seconds=slower, state=lambda n, node: new_kernel(n, node) | {"cpu.microcode": None})
    texts = describe_history(history_of(plan, SESSIONS))
    assert "Not recorded, so not compared: microcode." in texts


def test_json_has_the_numbers_of_the_sentences() -> None:
    found = history_of(Plan(seconds=slower, state=new_kernel), SESSIONS)
    document = json.loads(json.dumps(history_document(found, find_regressions(found, 0.03))))
    assert json_fields.compare("history", document) == []
    assert (document["format"], document["version"], document["study"]) == (
        "steelyard-history", 1, "nightly",
    )  # fmt: skip
    (event,) = document["events"]
    assert event["session"] == "2026-11-14"
    (change,) = event["changes"]
    assert change["low"] < 1.04 < change["high"]
    assert event["state"]["tags"][0]["label"] == "kernel"
    assert event["state"]["tags"][0]["owners"] == list(NODES)
    (series,) = document["series"]
    assert series["since"] == "2026-11-14"
    assert len(series["values"]) == SESSIONS
    assert document["regressions"] == [
        {"variant": "app", "condition": "clients=1", "metric": "seconds"}
    ]


# What readers know: jenkinsci/xunit-plugin, junit-10.xsd; docs.gitlab.com, "Unit test reports".
ATTRIBUTES = {
    "testsuites": set[str](),
    "testsuite": {"name", "tests", "failures", "errors", "skipped"},
    "testcase": {"name", "classname", "time"},
    "failure": {"message", "type"},
    "skipped": {"message"},
}


@pytest.mark.parametrize(
    ("sessions", "result"), [(SESSIONS, "failure"), (STEP, None), (4, "skipped"), (1, "skipped")]
)
def test_junit_has_a_case_for_each_figure(sessions: int, result: str | None) -> None:
    found = history_of(Plan(seconds=slower, state=new_kernel), sessions)
    root = ElementTree.fromstring(junit_text(found, find_regressions(found, 0.03)))
    for element in root.iter():
        assert set(element.attrib) <= ATTRIBUTES[element.tag]
    (suite,) = root
    (case,) = suite
    assert (case.get("classname"), case.get("name")) == ("nightly.app", "clients=1 seconds")
    assert [child.tag for child in case] == ([result] if result else [])
    assert suite.get("tests") == "1"
    assert suite.get("failures") == ("1" if result == "failure" else "0")
    assert suite.get("skipped") == ("1" if result == "skipped" else "0")
    if result == "failure":
        assert case[0].get("message", "").endswith(" since session 2026-11-14")
        assert "kernel 6.1.0-30 to 6.1.0-31" in (case[0].text or "")


def rising(number: int, node: str) -> float:
    """As a disk that fills: no interval holds from session to session."""
    return (25, 30, 60, 120, 200, 320, 450, 600, 780, 916)[number]


@pytest.mark.parametrize(
    ("seconds", "sessions", "reason"),
    [
        (slower, 4, "4 sessions; changes are looked for from 8 on"),
        (rising, 10, "it wanders from session to session: no interval holds"),
        (lambda n, node: 0.0, SESSIONS, "all sessions of a level are equal"),
    ],
)
def test_junit_skips_a_figure_that_cannot_fail(
    seconds: Callable[[int, str], float], sessions: int, reason: str
) -> None:
    found = history_of(Plan(seconds=seconds, noise=0.0), sessions)
    root = ElementTree.fromstring(junit_text(found, find_regressions(found, 0.03)))
    (skipped,) = root.iter("skipped")
    assert skipped.get("message", "").startswith(reason)
    assert root[0].get("skipped") == "1"


def test_junit_skips_a_figure_of_which_neither_side_is_better() -> None:
    found = history_of(Plan(seconds=slower), SESSIONS)
    (series,) = found.series
    plain = dataclasses.replace(series, metric=dataclasses.replace(series.metric, better=None))
    root = ElementTree.fromstring(junit_text(dataclasses.replace(found, series=(plain,)), []))
    (skipped,) = root.iter("skipped")
    assert skipped.get("message") == "neither side of it is better: no change of it is a failure"


def test_junit_counts_a_figure_that_failed_as_nothing_else() -> None:
    """A change for the worse without a level now, as after it the figure wanders."""
    found = history_of(Plan(seconds=slower), SESSIONS)
    (series,) = found.series
    course = dataclasses.replace(series.course, level=None, reason="it wanders")
    wandering = dataclasses.replace(series, course=course)
    change = dataclasses.replace(found.events[0].changes[0], series=wandering)
    event = dataclasses.replace(found.events[0], changes=(change,))
    found = dataclasses.replace(found, series=(wandering,), events=(event,))
    (suite,) = ElementTree.fromstring(junit_text(found, [change]))
    assert (suite.get("failures"), suite.get("skipped")) == ("1", "0")
    assert [child.tag for child in suite[0]] == ["failure"]


def test_junit_holds_no_character_that_xml_refuses() -> None:
    plan = Plan(
        seconds=slower,
        state=lambda n, node: STATE | {"site": "a\x1b<&" if n >= STEP else "b\x00"},
    )
    found = history_of(plan, SESSIONS)
    root = ElementTree.fromstring(junit_text(found, find_regressions(found, 0.03)))
    assert "a <&" in (root[0][0][0].text or "")
