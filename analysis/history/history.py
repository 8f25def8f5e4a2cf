"""Orders sessions, follows each main figure over them, and finds what changed when.

A change of a figure may be that of a single node.
"""

from __future__ import annotations

import heapq
import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.analysis.base.benchmark_traits import is_elapsed_figure
from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.history.extract_cache import ReadSession, read_sessions
from steelyard.analysis.history.session_extracts import Extract, FigureValues
from steelyard.analysis.history.state_changes import StateChange, compare_states
from steelyard.analysis.sources.study_sessions import SUFFIX, Session, list_sessions
from steelyard.analysis.stats.basics import CONFIDENCE, Estimate
from steelyard.analysis.stats.change_points import Change, Course, Drift, find_changes
from steelyard.analysis.stats.hypothesis_tests import LEVEL
from steelyard.analysis.stats.overhead import Overhead, compute_overhead
from steelyard.analysis.summary.study_data import Metric

Key = tuple[str, str, str]  # variant, label of the condition, metric
Value = tuple[float, tuple[str, ...]]  # of a run, and its nodes


@dataclass(frozen=True)
class Series:
    """A main figure of one variant and condition, by session."""

    variant: str
    label: str
    condition: dict[str, Any]
    levels: dict[str, str]  # by factor, as displayed
    metric: Metric
    runs: tuple[tuple[Value, ...], ...]  # in each session; empty without a value of this figure
    other_units: tuple[int, ...]  # sessions with values in another unit, which are not used
    is_current: bool  # the latest session still measures it
    course: Course

    @property
    def values(self) -> list[list[float]]:
        """The values of each session."""
        return [[value for value, _ in one] for one in self.runs]


@dataclass(frozen=True)
class FigureChange:
    """A change point of one series, or its slow drift since a session."""

    series: Series
    change: Change | Drift
    node: NodeShare | None = None  # the single node that changed

    @property
    def begin(self) -> int:
        """The first session after a step, or of a drift."""
        return self.change.begin if isinstance(self.change, Drift) else self.change.index

    @property
    def is_elapsed(self) -> bool:
        """Whether it is the elapsed time of a program, which follows the program's figures."""
        return is_elapsed_figure(self.series.variant, self.series.metric.name)

    @property
    def ratio(self) -> Estimate | None:
        """The ratio with its interval, if it shows a direction: of a level above 0 before.

        From −5 to −6 the ratio is 1.2, and the figure falls.
        """
        change = self.change
        if change.ratio is None or change.low is None or change.high is None:
            return None
        if isinstance(change, Drift):
            level = self.series.course.level
            before = level.mean / change.ratio if level and change.ratio else 0.0
        else:
            before = change.before
        return Estimate(change.ratio, change.low, change.high) if before > 0 else None

    @property
    def size(self) -> float:
        """The sort key: how far the ratio is from 1, equal for twice and for half."""
        ratio = self.ratio
        return abs(math.log(ratio.value)) if ratio is not None and ratio.value > 0 else math.inf


@dataclass(frozen=True)
class Event:
    """The changes of one session: figures, the largest change first, and states."""

    index: int  # of the first session after the change
    changes: tuple[FigureChange, ...]
    state: StateChange
    # The neighboring session, if only its state changed.
    neighbor_state: tuple[int, StateChange] | None


@dataclass(frozen=True)
class History:
    """A study's sessions by number, and the course of each main figure."""

    folder: Path  # STUDY.sessions
    sessions: tuple[Session, ...]  # used sessions
    extracts: tuple[Extract, ...]  # of the used sessions
    excluded: tuple[tuple[Session, str], ...]  # with the reason
    series: tuple[Series, ...]
    events: tuple[Event, ...]  # in the order of the sessions
    drifts: tuple[FigureChange, ...]  # of series that change slowly, without a step

    @property
    def name(self) -> str:
        """The study's name."""
        return self.folder.name.removesuffix(SUFFIX)


def read_history(folder: Path) -> History:
    """Read all collected sessions in a folder STUDY.sessions; raises MissingError without any."""
    history = make_history(folder, read_sessions(folder, list_sessions(folder)))
    if not history.sessions:
        reason = f": {history.excluded[0][1]}" if history.excluded else ""
        raise MissingError(f"{folder} has no session that can be read{reason}")
    return history


def make_history(folder: Path, found: Sequence[ReadSession]) -> History:
    """Make a history from sessions in the order of their numbers."""
    used, excluded = choose_sessions(found)
    sessions = tuple(session for session, _ in used)
    extracts = tuple(extract for _, extract in used)
    series = read_series(extracts)
    return History(
        folder=folder,
        sessions=sessions,
        extracts=extracts,
        excluded=tuple(excluded),
        series=tuple(series),
        events=tuple(find_events(extracts, series)),
        drifts=tuple(
            FigureChange(one, one.course.drift) for one in series if one.course.drift is not None
        ),
    )


def choose_sessions(
    found: Sequence[ReadSession],
) -> tuple[list[tuple[Session, Extract]], list[tuple[Session, str]]]:
    """Return the sessions of the latest session's study, and the other sessions with reasons."""
    known = [(one.session, one.extract) for one in found if one.extract is not None]
    excluded = [(one.session, one.reason or "") for one in found if one.extract is None]
    study = known[-1][1].study if known else ""
    others = [(session, extract) for session, extract in known if extract.study != study]
    excluded += [
        (session, f"it is of the study {extract.study}, the latest session of {study}")
        for session, extract in others
    ]
    return [one for one in known if one[1].study == study], excluded


def read_series(extracts: Sequence[Extract]) -> list[Series]:
    """Return a series for each main figure in any session, those of the latest session first."""
    by_session = [{figure_key(figure): figure for figure in one.figures} for one in extracts]
    keys = list(dict.fromkeys(key for figures in reversed(by_session) for key in figures))
    current = next((set(figures) for figures in reversed(by_session) if figures), set())
    return [
        make_series([figures.get(key) for figures in by_session], key in current, len(keys))
        for key in keys
    ]


def figure_key(figure: FigureValues) -> Key:
    return figure.variant, figure.label, figure.metric


def make_series(figures: Sequence[FigureValues | None], is_current: bool, number: int) -> Series:
    """Make the series of a figure that at least one session has.

    `number` is the number of series that are tested.
    """
    last = next(figure for figure in reversed(figures) if figure is not None)
    other_units = tuple(
        index
        for index, figure in enumerate(figures)
        if figure is not None and figure.values and figure.unit != last.unit
    )
    runs = tuple(
        tuple(zip(figure.values, map(tuple, figure.nodes), strict=True))
        if figure is not None and index not in other_units
        else ()
        for index, figure in enumerate(figures)
    )
    values = [[value for value, _ in one] for one in runs]
    return Series(
        variant=last.variant,
        label=last.label,
        condition=last.condition,
        levels=last.levels,
        metric=Metric(last.metric, last.unit, last.better, True),
        runs=runs,
        other_units=other_units,
        is_current=is_current,
        course=find_changes(values, series=number),
    )


def find_events(extracts: Sequence[Extract], series: Sequence[Series]) -> list[Event]:
    """Return the change points by session, with what else changed there."""
    by_index: dict[int, list[FigureChange]] = {}
    for one in series:
        ends = [0, *(change.index for change in one.course.changes), len(one.runs)]
        for number, change in enumerate(one.course.changes):
            before = one.runs[ends[number] : change.index]
            after = one.runs[change.index : ends[number + 2]]
            found = FigureChange(one, change, find_single_node(before, after))
            by_index.setdefault(change.index, []).append(found)
    begins = [0, *sorted(by_index)]
    return [
        make_event(extracts, begin, index, by_index[index])
        for begin, index in itertools.pairwise(begins)
    ]


def make_event(
    extracts: Sequence[Extract], begin: int, index: int, changes: Sequence[FigureChange]
) -> Event:
    """Make the event of the session at `index`; `begin` is that of the preceding event.

    The place of a small change is known to within a session or two, so if no state changed in this
    session, its neighbors are compared.
    """
    variants = [one.series.variant for one in changes]
    state = compare_states(extracts, begin, index, variants)
    neighbor = None
    if state.is_empty:
        beside = [
            (position, compare_states(extracts[: position + 1], position - 1, position, variants))
            for position in (index - 1, index + 1)
            if 0 < position < len(extracts)
        ]
        neighbor = next((one for one in beside if not one[1].is_empty), None)
    ranked = sorted(changes, key=lambda one: (not one.is_elapsed, one.size), reverse=True)
    return Event(index, tuple(ranked), state, neighbor)


def find_regressions(history: History, share: float, since: int = 0) -> list[FigureChange]:
    """Return changes for the worse by at least `share` that the latest sessions still show.

    For each current series the last change counts, from the level before it to the current level,
    and its drift since then. A change counts if its interval excludes 1. A figure without a better
    side has none. Changes before the session at `since` are accepted.
    """
    last = {id(one.series): one for event in history.events for one in event.changes}
    return [
        one
        for one in (*last.values(), *history.drifts)
        if one.series.is_current and one.begin >= since and is_worse(one, share)
    ]


def is_worse(found: FigureChange, share: float) -> bool:
    """Return whether a change is for the worse by this share, beyond its interval.

    A change of unknown size is not.
    """
    ratio = found.ratio
    if ratio is None or ratio.low is None or ratio.high is None:
        return False
    match found.series.metric.better:
        case "lower":
            return ratio.low > 1 and ratio.value - 1 >= share
        case "higher":
            return ratio.high < 1 and 1 - ratio.value >= share
    return False


SMALL_SHARE = 0.1  # of the node's own change: a smaller one of the others counts as none


@dataclass(frozen=True, slots=True)
class NodeShare:
    """A node and the change on it; `others` is the change of the runs without it."""

    node: str
    own: Overhead
    others: Overhead


@dataclass(frozen=True, slots=True)
class SessionSums:
    """Sum and number of a session's values, and of those of each node."""

    total: float
    number: int
    of_nodes: dict[str, tuple[float, int]]


Sessions = Sequence[Sequence[tuple[float, Sequence[str]]]]  # in each (value, its nodes)


def find_single_node(before: Sessions, after: Sessions) -> NodeShare | None:
    """Return the one node whose runs changed while the runs without it did not, or None.

    A session's mean is one value, since runs of a session share the effects of that day. Fieller's
    intervals, as for overheads, corrected for the number of nodes (Bonferroni), decide: the
    intervals of the node and of the others do not overlap, and that of the others contains 0, or
    their change is below a tenth of the node's. The result has uncorrected intervals.
    """
    sums = [[sum_session(one) for one in side] for side in (after, before)]
    names = sorted({name for side in sums for one in side for name in one.of_nodes})
    confidence = 1 - LEVEL / max(len(names), 1)
    farthest = heapq.nlargest(2, names, key=lambda name: estimate_change(name, sums))
    alone = [
        name
        for name in farthest
        if (one := compute_share(name, sums, confidence)) and is_single_node_change(one)
    ]
    return compute_share(alone[0], sums, CONFIDENCE) if len(alone) == 1 else None


def estimate_change(node: str, sums: Sequence[Sequence[SessionSums]]) -> float:
    """Return how far the node's mean moved; 0 if a side is missing.

    A single node's change is the largest.
    """
    after, before = (compute_node_means(node, side) for side in sums)
    if not after or not before:
        return 0.0
    return abs(statistics.fmean(after) - statistics.fmean(before))


def sum_session(values: Sequence[tuple[float, Sequence[str]]]) -> SessionSums:
    """Sum the values of one session; a run on several nodes counts for each."""
    of_nodes: dict[str, tuple[float, int]] = {}
    for value, nodes in values:
        for node in set(nodes):
            total, number = of_nodes.get(node, (0.0, 0))
            of_nodes[node] = total + value, number + 1
    return SessionSums(math.fsum(value for value, _ in values), len(values), of_nodes)


def compute_share(
    node: str, sums: Sequence[Sequence[SessionSums]], confidence: float
) -> NodeShare | None:
    """Compare the sessions after and before for one node; None if a group is empty."""
    own = [compute_node_means(node, side) for side in sums]
    others = [compute_other_means(node, side) for side in sums]
    if not all((*own, *others)):
        return None
    return NodeShare(
        node, *(compute_overhead(one, base, confidence) for one, base in (own, others))
    )


def compute_node_means(node: str, side: Sequence[SessionSums]) -> list[float]:
    """Return the mean of each session that has runs with the node."""
    found = [one.of_nodes[node] for one in side if node in one.of_nodes]
    return [total / number for total, number in found]


def compute_other_means(node: str, side: Sequence[SessionSums]) -> list[float]:
    """Return the mean of each session that has runs without the node."""
    means = []
    for one in side:
        total, number = one.of_nodes.get(node, (0.0, 0))
        if one.number > number:
            means.append((one.total - total) / (one.number - number))
    return means


def is_single_node_change(share: NodeShare) -> bool:
    """Return whether the change is that of this node alone."""
    own, others = share.own, share.others
    if own.value is None or own.low is None or own.high is None:
        return False
    if others.value is None or others.low is None or others.high is None:
        return False
    if own.low <= others.high and others.low <= own.high:
        return False
    holds_0 = others.low <= 0 <= others.high
    return holds_0 or abs(others.value) < SMALL_SHARE * abs(own.value)
