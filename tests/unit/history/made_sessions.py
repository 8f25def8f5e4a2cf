"""Sessions of a study as extracts, with planned values and states: no database is read."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from steelyard.analysis.history.extract_cache import ReadSession
from steelyard.analysis.history.history import History, make_history
from steelyard.analysis.history.session_extracts import Extract, FigureValues
from steelyard.analysis.sources.study_sessions import Session

FIRST = datetime(2026, 11, 1, 2, tzinfo=UTC)
NODES = ("n1", "n2", "n3", "n4")
STATE = {"kernel.release": "6.1.0-30", "steelyard": "0.1.0"}
RUNS = 3  # on each node


@dataclass
class Plan:
    """The content of the sessions; functions get the session's number from 0, and a node or
    variant.
    """

    seconds: Callable[[int, str], float] = lambda number, node: 10.0
    nodes: Callable[[int], Sequence[str]] = lambda number: NODES
    state: Callable[[int, str], Mapping[str, str | None]] = lambda number, node: STATE
    program: Callable[[int], Mapping[str, str | None]] = lambda number: {"program /opt/app": "aa11"}
    name: Callable[[int], str] = lambda number: f"{FIRST + timedelta(number):%Y-%m-%d}"
    levels: Callable[[int], Sequence[int]] = lambda number: (1,)
    unit: Callable[[int], str] = lambda number: "s"
    study: Callable[[int], str] = lambda number: "nightly"
    began: Callable[[int], float] = lambda number: (FIRST + timedelta(number)).timestamp()
    reason: Callable[[int], str | None] = lambda number: None
    variants: Sequence[str] = ("app",)
    better: str | None = "lower"
    noise: float = 0.005
    waiting: int = 0
    chance: random.Random = field(default_factory=lambda: random.Random(5))


def history_of(plan: Plan, number: int) -> History:
    """Return the history of `number` sessions."""
    return make_history(
        Path("nightly.sessions"), [read_session(plan, place) for place in range(number)]
    )


def read_session(plan: Plan, place: int) -> ReadSession:
    """Return a session as if it had been read."""
    name = plan.name(place)
    session = Session(name, place + 1, plan.began(place), Path(f"{name}.study"))
    reason = plan.reason(place)
    return ReadSession(session, None if reason else extract_of(plan, place), reason)


def extract_of(plan: Plan, place: int) -> Extract:
    """Return runs of each variant and level on every node."""
    nodes = plan.nodes(place)
    return Extract(
        study=plan.study(place),
        figures=[
            figure_of(plan, place, variant, level)
            for variant in plan.variants
            for level in plan.levels(place)
        ],
        states={node: dict(plan.state(place, node)) for node in nodes},
        programs={variant: dict(plan.program(place)) for variant in plan.variants},
        completed=len(nodes),
        failed=0,
        invalid=0,
        waiting=plan.waiting,
    )


def figure_of(plan: Plan, place: int, variant: str, level: int) -> FigureValues:
    """Return `seconds` of one variant and level."""
    on = [node for node in plan.nodes(place) for _ in range(RUNS)]
    condition: dict[str, Any] = {"clients": level}
    return FigureValues(
        variant=variant,
        label=f"clients={level}",
        condition=condition,
        levels={"clients": str(level)},
        metric="seconds",
        unit=plan.unit(place),
        better=plan.better,
        values=[plan.seconds(place, node) * plan.chance.gauss(1, plan.noise) for node in on],
        nodes=[[node] for node in on],
    )
