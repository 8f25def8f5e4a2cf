"""Planted changes of a figure and of states: what is found, and what is put down to what."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from steelyard.analysis.history.history import Event, History, Value, find_single_node, make_history
from steelyard.analysis.history.state_changes import compare_states

from .made_sessions import NODES, STATE, Plan, extract_of, history_of, read_session

SESSIONS, STEP = 20, 12


def slower(number: int, node: str) -> float:
    """Return a value that is 4 % higher from the step on."""
    return 10.4 if number >= STEP else 10.0


def kernel_at(step: int, nodes: tuple[str, ...] = NODES) -> Plan:
    """Slower from STEP on; these nodes have another kernel from `step` on."""

    def state(number: int, node: str) -> Mapping[str, str | None]:
        is_new = number >= step and node in nodes
        return STATE | {"kernel.release": "6.1.0-31" if is_new else "6.1.0-30"}

    return Plan(seconds=slower, state=state)


def only_event(found: History) -> Event:
    (event,) = found.events
    return event


def test_a_step_and_the_tag_that_changed_with_it_are_one_event() -> None:
    event = only_event(history_of(kernel_at(STEP), SESSIONS))
    assert event.index == STEP
    (one,) = event.changes
    assert one.change.low is not None and one.change.high is not None
    assert one.change.low < 1.04 < one.change.high
    assert one.node is None
    (tag,) = event.state.tags
    assert (tag.key, tag.before, tag.after) == ("kernel.release", "6.1.0-30", "6.1.0-31")
    assert tag.owners == NODES
    assert event.state.nodes == len(NODES)


def test_what_a_program_says_itself_comes_before_its_time() -> None:
    """Although its time has changed more."""
    sessions = [read_session(kernel_at(STEP), place) for place in range(SESSIONS)]
    for place, one in enumerate(sessions):
        assert one.extract is not None
        (seconds,) = one.extract.figures
        values = [value * (1.01 if place >= STEP else 1.0) for value in seconds.values]
        longer = dataclasses.replace(seconds, values=values)
        steps = dataclasses.replace(seconds, metric="steps", unit="1/s", better="higher")
        extract = dataclasses.replace(one.extract, figures=[longer, steps])
        sessions[place] = dataclasses.replace(one, extract=extract)
    event = only_event(make_history(Path("nightly.sessions"), sessions))
    assert [one.series.metric.name for one in event.changes] == ["steps", "seconds"]
    assert event.changes[0].size < event.changes[1].size


def test_a_tag_that_changed_elsewhere_is_not_put_down_to_the_step() -> None:
    event = only_event(history_of(kernel_at(STEP - 4), SESSIONS))
    assert event.state.is_empty
    assert event.neighbor_state is None


def test_a_tag_that_changed_a_session_earlier_is_told_as_near() -> None:
    event = only_event(history_of(kernel_at(STEP - 1), SESSIONS))
    assert event.state.is_empty
    assert event.neighbor_state is not None
    place, state = event.neighbor_state
    assert place == STEP - 1
    assert [tag.after for tag in state.tags] == ["6.1.0-31"]


def test_a_tag_of_some_nodes_names_these() -> None:
    event = only_event(history_of(kernel_at(STEP, ("n2", "n4")), SESSIONS))
    assert [tag.owners for tag in event.state.tags] == [("n2", "n4")]


def test_a_change_on_one_node_is_that_nodes() -> None:
    plan = Plan(seconds=lambda number, node: 13.0 if number >= STEP and node == "n3" else 10.0)
    (one,) = only_event(history_of(plan, SESSIONS)).changes
    assert one.node is not None
    assert one.node.node == "n3"
    assert one.node.own.value == pytest.approx(0.3, abs=0.02)
    assert one.node.others.value == pytest.approx(0, abs=0.01)


def test_a_change_on_two_nodes_is_no_single_nodes() -> None:
    plan = Plan(
        seconds=lambda number, node: 13.0 if number >= STEP and node in ("n3", "n4") else 10.0
    )
    (one,) = only_event(history_of(plan, SESSIONS)).changes
    assert one.node is None


def test_several_figures_of_one_session_are_one_event_the_largest_first() -> None:
    plan = Plan(
        seconds=lambda number, node: slower(number, node), levels=lambda number: (1, 2), noise=0.004
    )
    found = history_of(plan, SESSIONS)
    event = only_event(found)
    sizes = [one.size for one in event.changes]
    assert len(sizes) == 2
    assert sizes == sorted(sizes, reverse=True)


def test_nodes_that_left_and_joined_are_named() -> None:
    plan = Plan(
        seconds=slower,
        nodes=lambda number: ("n1", "n2", "n9") if number >= STEP else ("n1", "n2", "n3"),
    )
    state = only_event(history_of(plan, SESSIONS)).state
    assert (state.left, state.joined) == (("n3",), ("n9",))
    assert state.nodes == 2


def test_sessions_on_few_of_many_nodes_have_no_leavers() -> None:
    """A session that used 2 of 12 nodes by chance says nothing about the other 10."""
    chance = random.Random(3)
    every = [f"n{number}" for number in range(1, 13)]
    nodes = [tuple(chance.sample(every, 2)) for _ in range(SESSIONS)]
    plan = Plan(seconds=slower, nodes=lambda number: nodes[number])
    state = only_event(history_of(plan, SESSIONS)).state
    assert (state.left, state.joined) == ((), ())


def test_another_program_is_what_was_measured_and_no_tag_of_nodes() -> None:
    plan = Plan(
        seconds=slower,
        program=lambda number: {"program /opt/app": "bb22" if number >= STEP else "aa11"},
    )
    state = only_event(history_of(plan, SESSIONS)).state
    assert state.tags == ()
    (program,) = state.programs
    assert (program.key, program.before, program.after) == ("program /opt/app", "aa11", "bb22")
    assert program.owners == ("app",)


def test_what_is_not_known_is_no_difference_and_is_told_where_no_side_knows_it() -> None:
    plan = Plan(
        seconds=slower,
        state=lambda number, node: (
            STATE
            | {"cpu.microcode": None, "cpu.governor": "performance" if number >= STEP else None}
        ),
    )
    state = only_event(history_of(plan, SESSIONS)).state
    assert state.tags == ()
    assert state.unrecorded == ("cpu.microcode",)


@pytest.mark.parametrize(("version", "keys"), [("0.1.0", ["governor"]), ("0.2.0", ["steelyard"])])
def test_a_key_of_one_side_counts_where_the_same_steelyard_recorded_both(
    version: str, keys: list[str]
) -> None:
    """Another version of Steelyard records other keys: that is no change of the machine."""
    plan = Plan(
        seconds=slower,
        state=lambda number, node: (
            STATE | {"steelyard": version, "governor": "powersave"} if number >= STEP else STATE
        ),
    )
    state = only_event(history_of(plan, SESSIONS)).state
    assert [tag.key for tag in state.tags] == keys


def test_a_key_that_another_one_implies_is_left_out() -> None:
    plan = Plan(
        seconds=slower,
        state=lambda number, node: (
            STATE
            | {"kernel.release": f"6.{number >= STEP}", "kernel.version": f"#{number >= STEP}"}
        ),
    )
    state = only_event(history_of(plan, SESSIONS)).state
    assert [tag.key for tag in state.tags] == ["kernel.release"]


def test_a_state_of_long_ago_is_not_compared() -> None:
    """n4 has an old kernel in its last session, a week before the step, and the new one after it."""

    def nodes(number: int) -> tuple[str, ...]:
        return NODES[:3] if 5 <= number < STEP else NODES

    def state(number: int, node: str) -> Mapping[str, str | None]:
        return STATE | {"kernel.release": "6.1.0-31" if number >= 5 else "6.1.0-30"}

    found = only_event(history_of(Plan(seconds=slower, nodes=nodes, state=state), SESSIONS)).state
    assert (found.nodes, found.tags) == (3, ())
    assert found.joined == ("n4",)


def test_one_session_is_too_few_for_nodes_that_left() -> None:
    plan = Plan(nodes=lambda number: ("n1", "n9") if number >= 1 else ("n1", "n2"))
    extracts = [extract_of(plan, place) for place in range(4)]
    state = compare_states(extracts, 0, 1, ["app"])
    assert (state.left, state.joined) == ((), ("n9",))


def shares(
    seconds: Mapping[str, float], noise: float, together: bool = False
) -> tuple[list[list[Value]], list[list[Value]]]:
    """Six sessions before, with 10 s on each node, and six after."""
    chance = random.Random(2)

    def session(values: Mapping[str, float]) -> list[Value]:
        places = {
            node: ("n1", "n2") if together and node in "n1 n2" else (node,) for node in values
        }
        return [(value * chance.gauss(1, noise), places[node]) for node, value in values.items()]

    before = [session(dict.fromkeys(seconds, 10.0)) for _ in range(6)]
    return before, [session(seconds) for _ in range(6)]


def test_noise_is_no_single_nodes_change() -> None:
    sides = shares({"n1": 10.3, "n2": 10.0, "n3": 10.0}, 0.2)
    assert find_single_node(*sides) is None


def test_two_nodes_that_always_run_together_are_not_told_apart() -> None:
    sides = shares({"n1": 13.0, "n2": 13.0, "n3": 10.0, "n4": 10.0}, 0.002, together=True)
    assert find_single_node(*sides) is None
    alone = find_single_node(*shares({"n1": 13.0, "n3": 10.0, "n4": 10.0}, 0.002))
    assert alone is not None and alone.node == "n1"
