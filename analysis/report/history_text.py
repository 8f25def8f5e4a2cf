"""Describes a history in sentences: when a figure changed, by how much, what changed as well."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime

from steelyard.analysis.history.history import Event, FigureChange, History, Series
from steelyard.analysis.history.machine_tags import tag_label
from steelyard.analysis.history.state_changes import Difference, StateChange
from steelyard.analysis.report.answer import (
    MAX_NAMES,
    format_upper_percent,
    includes_zero,
    join_names,
)
from steelyard.analysis.report.phrases import (
    describe_between,
    describe_level,
    describe_overhead,
    join_phrases,
)
from steelyard.analysis.sources.study_sessions import Session
from steelyard.analysis.stats.basics import Estimate
from steelyard.analysis.stats.change_points import MIN_SESSIONS, Change, Drift
from steelyard.analysis.stats.number_format import format_mean, format_quantity
from steelyard.analysis.stats.overhead import Overhead
from steelyard.analysis.summary.rows import Counts, Group, Row
from steelyard.jobscripts.plurals import counted, inflect

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
PROGRAM, LIBRARY = "program ", "library "  # key prefixes of files in extracts
MOST_KEYS = 4  # per group of nodes in a sentence; --json has all


def describe_history(history: History) -> list[str]:
    """Return a paragraph per event, the latest first; then drifts, power and remarks."""
    found = [describe_event(history, event) for event in reversed(history.events)]
    found += [describe_drift(history, one) for one in history.drifts if one.series.is_current]
    return [*found, describe_power(history), *describe_remarks(history)]


def describe_event(history: History, event: Event) -> str:
    """Return `CG computes 4.1 % slower (…) since 14 November 2026; on that day 12 of 12 nodes
    …`.
    """
    session = history.sessions[event.index]
    state = event.state
    causes = " ".join(describe_state(history, event, state))
    return f"{describe_changes(history, event.changes, session)}{causes}"


def describe_changes(history: History, changes: Sequence[FigureChange], session: Session) -> str:
    """Describe the figures that changed, without the full stop."""
    parts = [describe_change(history, one) for one in changes[:MAX_NAMES]]
    if len(parts) == 1:
        return f"{parts[0]} since {format_session_date(session)}; {format_session_time(session)} "
    if remaining := len(changes) - MAX_NAMES:
        parts += [f"{counted(remaining, 'more figure')} changed"] if remaining > 0 else []
    return f"Since {format_session_date(session)}: {'; '.join(parts)}. {format_session_time(session).capitalize()} "


def describe_change(history: History, found: FigureChange) -> str:
    """Return `npb kernel=cg with 2 clients computes 4.1 % slower (3.2 to 5.0 %)`, and the node."""
    text = describe_size(found)
    if found.node is not None:
        text += f" on {found.node.node} alone"
    return f"{format_figure_name(history, found.series)} {text}"


def describe_size(found: FigureChange) -> str:
    """Return `takes 4.1 % longer (3.2 to 5.0 %)`; without a ratio `went from 0 s to 5 s`.

    If the interval shows no direction: `takes 1 % less to 5 % more time`.
    """
    point = found.change
    size = found.node.own if found.node is not None else None
    if size is None and found.ratio is not None:
        size = make_overhead(found.ratio)
    if size is not None:
        row = make_row(found.series, size)
        return describe_between(row) if includes_zero(row) else describe_overhead(row)
    unit = found.series.metric.unit
    assert isinstance(point, Change)  # describe_drift() has a sentence for a drift without a ratio
    return (
        f"went from {format_quantity(point.before, unit)} to {format_quantity(point.after, unit)}"
    )


def make_overhead(ratio: Estimate) -> Overhead:
    """Return a known ratio as an overhead, which the report's sentences need."""
    assert ratio.low is not None and ratio.high is not None
    return Overhead(ratio.value - 1, ratio.low - 1, ratio.high - 1, 0, 0, "change point")


def describe_drift(history: History, found: FigureChange) -> str:
    """Describe a slow change: its size from its first session to the latest.

    Without a ratio the level of the first session may have been 0 or below.
    """
    assert isinstance(found.change, Drift)
    begin = format_session_date(history.sessions[found.change.begin])
    text = f"{format_figure_name(history, found.series)} changes slowly, without a step"
    if found.ratio is None:
        return f"{text}, since {begin}, when its level may have been 0 or below."
    return f"{text}: compared with {begin}, it now {describe_size(found)}."


def make_row(series: Series, size: Overhead) -> Row:
    """Return a row, which the report's sentences need."""
    group = Group(
        variant=series.variant,
        label=series.label,
        condition=series.condition,
        is_baseline=False,
        runs=(),
        counts=Counts(0, 0, 0, 0, 0),
        baseline_label=None,
        levels=series.levels,
    )
    return Row(group, series.metric, (), (), 0, overhead=size)


def format_figure_name(history: History, series: Series) -> str:
    """Return the variant, its metric if it has several, and the levels of varied factors."""
    metrics = {one.metric.name for one in history.series if one.variant == series.variant}
    metric = f" ({series.metric.name})" if len(metrics) > 1 else ""
    return f"{series.variant}{metric}{format_condition(history, series)}"


def format_condition(history: History, series: Series) -> str:
    """Return ` with 2 clients`; empty if no factor varies."""
    phrases = [
        describe_level(factor, series.levels[factor])
        for factor in find_varied_factors(history, series)
    ]
    return f" {join_phrases(phrases)}" if phrases else ""


def find_varied_factors(history: History, series: Series) -> list[str]:
    """Return the factors of which this variant's series have several levels."""
    others = [one.levels for one in history.series if one.variant == series.variant]
    return [f for f in series.levels if len({levels.get(f) for levels in others}) > 1]


def format_session_date(session: Session) -> str:
    """Return `14 November 2026` for a session with such a name, else `session NAME (…)`."""
    try:
        day, session_name = date.fromisoformat(session.name), ""
    except ValueError:
        began = datetime.fromtimestamp(session.began_unix_s, UTC).astimezone()
        day, session_name = began.date(), f"session {session.name}"
    text = f"{day.day} {MONTHS[day.month - 1]} {day.year}"
    return f"{session_name} ({text})" if session_name else text


def format_session_time(session: Session) -> str:
    return (
        "in that session" if format_session_date(session).startswith("session") else "on that day"
    )


def describe_state(history: History, event: Event, state: StateChange) -> Iterator[str]:
    """Describe what changed in the same session; the first sentence lacks its beginning."""
    parts = [*describe_tag_changes(state), *describe_node_changes(state)]
    programs = [describe_program_change(one) for one in state.programs]
    if parts:
        yield f"{join_phrases(parts)}."
    if programs:
        lead = (
            "What was measured changed, too: "
            if parts
            else "what was measured changed, not the machine: "
        )
        yield f"{lead}{join_phrases(programs)}."
    if not parts and not programs:
        yield from describe_nothing(history, event, state)
    elif state.nodes:
        yield "Nothing else changed."


def describe_nothing(history: History, event: Event, state: StateChange) -> Iterator[str]:
    """Describe that no state changed in the session itself."""
    if not state.nodes:
        yield "no node has a record on both sides, so what else changed is not known."
        return
    yield f"nothing else changed on {counted(state.nodes, 'node')}."
    if event.neighbor_state is not None:
        index, changes = event.neighbor_state
        side = "before" if index < event.index else "after"
        parts = [
            *describe_tag_changes(changes),
            *describe_node_changes(changes),
            *(describe_program_change(p) for p in changes.programs),
        ]
        where = format_session_date(history.sessions[index])
        yield f"One session {side}, {where}, {join_phrases(parts)}."


def describe_tag_changes(state: StateChange) -> list[str]:
    """Return `12 of 12 nodes went from kernel 6.1.0-30 to 6.1.0-31 and from …`, by group of
    nodes.
    """
    by_nodes: dict[tuple[str, ...], list[Difference]] = {}
    for one in state.tags:
        by_nodes.setdefault(one.owners, []).append(one)
    return [
        f"{format_nodes(nodes, state.nodes)} went {join_phrases(format_steps(found))}"
        for nodes, found in by_nodes.items()
    ]


def format_steps(found: Sequence[Difference]) -> list[str]:
    """Return `from kernel 6.1.0-30 to 6.1.0-31` for each key; of many keys only the first ones."""
    phrases = [
        f"from {format_key(one.key)} {format_value(one.before)} to {format_value(one.after)}"
        for one in found
    ]
    remaining = len(phrases) - MOST_KEYS
    return (
        phrases
        if remaining <= 0
        else [*phrases[:MOST_KEYS], f"changed {counted(remaining, 'more tag')}"]
    )


def format_key(key: str) -> str:
    """Return a tag's label; for a file its path."""
    if key.startswith((PROGRAM, LIBRARY)):
        return f"{key}, SHA-256"
    return tag_label(key)


def format_value(text: str | None) -> str:
    return "none" if text is None else text


def format_nodes(nodes: Sequence[str], every: int) -> str:
    """Return `n07` for one node, else `8 of 12 nodes`."""
    return (
        nodes[0] if len(nodes) == 1 and every > 1 else f"{len(nodes)} of {counted(every, 'node')}"
    )


def describe_node_changes(state: StateChange) -> list[str]:
    """Return `n13 joined`, `n05 and n06 left`."""
    pairs = ((state.left, "left"), (state.joined, "joined"))
    return [f"{join_names(nodes)} {word}" for nodes, word in pairs if nodes]


def describe_program_change(one: Difference) -> str:
    """Return `app went from program /opt/app, SHA-256 1234 to 5678`."""
    return f"{join_names(one.owners)} went {format_steps([one])[0]}"


def describe_power(history: History) -> str:
    """Return `No change above 1.5 % would have been missed.`, for the current series."""
    known = [
        (one.course.detectable, format_figure_name(history, one))
        for one in history.series
        if one.is_current and one.course.detectable is not None
    ]
    sizes = f"{counted(len(history.series), 'main figure')} in {counted(len(history.sessions), 'session')}"
    has_changes = bool(history.events or history.drifts)
    if not has_changes and len(history.sessions) < MIN_SESSIONS:
        return f"No change was looked for: {sizes}; changes are looked for from {MIN_SESSIONS} sessions on."
    lead = "" if has_changes else f"No change was found: {sizes}. "
    if not known:
        return f"{lead}How small a change would have been found is not known: {describe_missing_power(history)}."
    other = "other change" if has_changes else "change"
    (least, steady), (most, noisy) = min(known), max(known)
    if format_upper_percent(least) == format_upper_percent(most):
        statement = f"No {other} above {format_upper_percent(most)} % would have been missed"
    else:
        statement = (
            f"No {other} above {format_upper_percent(least)} % in {steady}, the steadiest figure, and above "
            f"{format_upper_percent(most)} % in {noisy}, the noisiest, would have been missed"
        )
    return f"{lead}{statement} (9 in 10, five sessions after it)."


def describe_missing_power(history: History) -> str:
    reasons = (one.course.reason for one in history.series if one.is_current and one.course.reason)
    return next(reasons, "no main figure has values")


def describe_remarks(history: History) -> Iterator[str]:
    """Yield remarks on unused sessions, clocks and figures that ended."""
    yield from describe_unrecorded(history)
    yield from describe_excluded_sessions(history)
    yield from describe_clocks(history.sessions)
    yield from describe_empty_sessions(history)
    yield from describe_series(history)


def describe_unrecorded(history: History) -> Iterator[str]:
    """Describe tags that no node could read, so that a change of them is not detected."""
    keys = {key: None for event in history.events for key in event.state.unrecorded}
    if keys:
        yield f"Not recorded, so not compared: {join_names([tag_label(key) for key in keys])}."


def describe_excluded_sessions(history: History) -> Iterator[str]:
    """Describe the sessions that could not be read, with the reasons."""
    for session, reason in history.excluded[-MAX_NAMES:]:
        yield f"Session {session.name} is not used: {reason}."
    if (remaining := len(history.excluded) - MAX_NAMES) > 0:
        yield f"{counted(remaining, 'earlier session')} more {inflect(remaining, 'is', 'are')} not used."


def describe_clocks(sessions: Sequence[Session]) -> Iterator[str]:
    """Describe sessions that began before a session that was submitted earlier."""
    back = [b.name for a, b in itertools.pairwise(sessions) if b.began_unix_s < a.began_unix_s]
    if back:
        yield (
            f"The clock was set back before {join_names([f'session {name}' for name in back])}: sessions "
            "are in the order in which they were submitted."
        )


def describe_empty_sessions(history: History) -> Iterator[str]:
    """Describe sessions without a value, and those with unfinished runs."""
    pairs = list(zip(history.sessions, history.extracts, strict=True))
    empty = [s.name for s, one in pairs if not any(figure.values for figure in one.figures)]
    waiting = [s.name for s, one in pairs if one.waiting]
    if empty:
        yield f"Without any value of a main figure: {format_sessions(empty)}."
    if waiting:
        yield f"Collected before all runs had ended: {format_sessions(waiting)}; collect again."


def format_sessions(names: Sequence[str]) -> str:
    return f"{inflect(len(names), 'session')} {join_names(names)}"


def describe_series(history: History) -> Iterator[str]:
    """Describe figures that are not current, outliers, and values in another unit."""
    ended = [one for one in history.series if not one.is_current]
    if ended:
        names = join_names([format_figure_name(history, one) for one in ended])
        yield f"Not in the latest session: {names}."
    for one in history.series:
        if odd := [history.sessions[index].name for index in one.course.outliers[-MAX_NAMES:]]:
            yield f"Outliers in {format_figure_name(history, one)}, no change: {format_sessions(odd)}."
        if one.other_units:
            later = [history.sessions[index].name for index in one.other_units]
            yield (
                f"{format_figure_name(history, one)}: {format_sessions(later)} {'has' if len(later) == 1 else 'have'} "
                f"another unit than {one.metric.unit} and no value here."
            )


def build_level_rows(history: History) -> list[tuple[str, ...]]:
    """Return for each current series: name, metric, level, since when, last change, detectable."""
    by_series = {id(c.series): c for event in history.events for c in event.changes}
    found: list[tuple[str, ...]] = []
    for one in history.series:
        if not one.is_current:
            continue
        last = by_series.get(id(one))
        level = one.course.level
        found.append(
            (
                f"{one.variant}{format_condition(history, one)}",
                one.metric.name,
                format_mean(level, one.metric.unit) if level else one.course.reason or "–",
                history.sessions[one.course.segment_begin].name,
                describe_size(last) if last else "drifts" if one.course.drift else "none found",
                "–"
                if math.isnan(d := one.course.detectable or math.nan)
                else f"{format_upper_percent(d)} %",
            )
        )
    return found
