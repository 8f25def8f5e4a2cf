"""Converts a history to JSON, and to JUnit's XML for servers that read test results."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

from steelyard.analysis.history.history import Event, FigureChange, History, Series
from steelyard.analysis.history.machine_tags import tag_label
from steelyard.analysis.history.state_changes import Difference, StateChange
from steelyard.analysis.report.history_text import (
    describe_change,
    describe_drift,
    describe_event,
    describe_history,
)
from steelyard.analysis.sources.study_sessions import Session
from steelyard.analysis.stats.change_points import MIN_SESSIONS, Drift
from steelyard.analysis.stats.overhead import Overhead

FORMAT, VERSION = "steelyard-history", 1


def history_document(history: History, regressions: Sequence[FigureChange]) -> dict[str, Any]:
    """Return all numbers; null is not known."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "study": history.name,
        "answer": describe_history(history),
        "sessions": [
            session_document(session, len(history.extracts[index].states))
            for index, session in enumerate(history.sessions)
        ],
        "left_out": [
            {"session": session.name, "reason": reason} for session, reason in history.excluded
        ],
        "series": [series_document(history, one) for one in history.series],
        "events": [event_document(history, event) for event in history.events],
        "regressions": [figure_key(one.series) for one in regressions],
    }


def session_document(session: Session, nodes: int) -> dict[str, Any]:
    return {
        "name": session.name,
        "number": session.number,
        "began_unix_s": session.began_unix_s,
        "nodes": nodes,
    }


def figure_key(series: Series) -> dict[str, Any]:
    """Return the fields that identify a series."""
    return {"variant": series.variant, "condition": series.label, "metric": series.metric.name}


def series_document(history: History, series: Series) -> dict[str, Any]:
    """Return a figure's current level and its values by session."""
    course = series.course
    level = course.level
    return figure_key(series) | {
        "unit": series.metric.unit,
        "better": series.metric.better,
        "is_current": series.is_current,
        "mean": level and level.mean,
        "low": level and level.low,
        "high": level and level.high,
        "since": history.sessions[course.segment_begin].name if level else None,
        "detectable": course.detectable,
        "reason": course.reason,
        "drift": course.drift and drift_document(history, course.drift),
        "outliers": [history.sessions[index].name for index in course.outliers],
        "values": series.values,
    }


def drift_document(history: History, drift: Drift) -> dict[str, Any]:
    return {
        "since": history.sessions[drift.begin].name,
        "ratio": drift.ratio,
        "low": drift.low,
        "high": drift.high,
        "p": drift.p,
    }


def event_document(history: History, event: Event) -> dict[str, Any]:
    """Return the changes of one session."""
    index, state = event.neighbor_state or (None, None)
    return {
        "session": history.sessions[event.index].name,
        "text": describe_event(history, event),
        "changes": [change_document(one) for one in event.changes],
        "state": state_document(event.state),
        "near_session": None if index is None else history.sessions[index].name,
        "near_state": state and state_document(state),
    }


def change_document(found: FigureChange) -> dict[str, Any]:
    point, node = found.change, found.node
    return figure_key(found.series) | {
        "ratio": point.ratio,
        "low": point.low,
        "high": point.high,
        "p": point.p,
        "before": getattr(point, "before", None),
        "after": getattr(point, "after", None),
        "node": node
        and {
            "name": node.node,
            "own": overhead_document(node.own),
            "others": overhead_document(node.others),
        },
    }


def overhead_document(found: Overhead) -> dict[str, Any]:
    return {"overhead": found.value, "low": found.low, "high": found.high}


def state_document(state: StateChange) -> dict[str, Any]:
    return {
        "nodes": state.nodes,
        "tags": [difference_document(one) for one in state.tags],
        "programs": [difference_document(one) for one in state.programs],
        "left": list(state.left),
        "joined": list(state.joined),
        "unrecorded": list(state.unrecorded),
    }


def difference_document(one: Difference) -> dict[str, Any]:
    return dataclasses.asdict(one) | {"label": tag_label(one.key), "owners": list(one.owners)}


def junit_text(history: History, regressions: Sequence[FigureChange]) -> str:
    """Return JUnit XML with a test case for each current figure.

    A regression fails the case. A case that could not fail is skipped, with the reason. The
    elements and attributes are those that Jenkins' schema junit-10.xsd (jenkinsci/xunit-plugin) and
    GitLab's reader know.
    """
    bad = {id(one.series): one for one in regressions}
    series = [one for one in history.series if one.is_current]
    skipped = {
        id(one): reason for one in series if id(one) not in bad and (reason := skip_reason(one))
    }
    suite = ElementTree.Element(
        "testsuite",
        name=f"steelyard history {history.name}",
        tests=str(len(series)),
        failures=str(len(bad)),
        errors="0",
        skipped=str(len(skipped)),
    )
    for one in series:
        case = ElementTree.SubElement(
            suite, "testcase",
            classname=f"{history.name}.{one.variant}", name=case_name(one), time="0",
        )  # fmt: skip
        if id(one) in bad:
            add_failure(case, history, bad[id(one)])
        elif reason := skipped.get(id(one)):
            ElementTree.SubElement(case, "skipped", message=printable(reason))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def skip_reason(series: Series) -> str | None:
    """Return why a figure cannot have a regression (yet); None if it can.

    If all sessions of a level are equal, the detectable change is unknown, but a step is still
    found, so this is no reason to skip.
    """
    if series.metric.better is None:
        return "neither side of it is better: no change of it is a failure"
    course = series.course
    level = course.level
    if level is None or level.mean == 0 or sum(map(bool, series.runs)) < MIN_SESSIONS:
        return course.reason
    return None if level.low == level.high else course.reason


def case_name(series: Series) -> str:
    """Return condition and metric."""
    return " ".join([*([series.label] if series.condition else []), series.metric.name])


def add_failure(case: ElementTree.Element, history: History, found: FigureChange) -> None:
    """Add a failure with the change as message and, for a step, the event's sentences as text."""
    if isinstance(found.change, Drift):
        message, text = describe_drift(history, found), ""
    else:
        event = next(one for one in history.events if found in one.changes)
        name = history.sessions[event.index].name
        message = f"{describe_change(history, found)} since session {name}"
        text = describe_event(history, event)
    failure = ElementTree.SubElement(
        case, "failure", message=printable(message), type="regression"
    )  # fmt: skip
    failure.text = printable(text)


def printable(text: str) -> str:
    """Replace characters that XML 1.0 cannot contain."""
    return "".join(c if c.isprintable() else " " for c in text)
