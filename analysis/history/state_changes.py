"""Finds what else changed at a session: tags of nodes, programs, and which nodes were used.

A node's state before is that of its last use in the WINDOW sessions before the change; its state
after is that of its first use in the WINDOW sessions from the change on. So a node that one session
did not use is still compared, but the old state of a node that was unused for months is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from steelyard.analysis.history.machine_tags import IMPLIED_BY, LABELS, State, tag_label
from steelyard.analysis.history.session_extracts import Extract

WINDOW = 5  # sessions on each side
VERSION = "steelyard"  # the key of the version that recorded a state
PLACES = {key: position for position, key in enumerate(LABELS)}
SURE_SESSIONS = 2  # a node that fewer sessions used, or did not use, may be there by chance


@dataclass(frozen=True, slots=True)
class Difference:
    """A key whose value differs; None means that it had none. `owners` are nodes or variants."""

    key: str
    before: str | None
    after: str | None
    owners: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StateChange:
    """The differences between the sessions before and after."""

    nodes: int  # used and recorded on both sides
    tags: tuple[Difference, ...]  # of nodes, those of most nodes first
    programs: tuple[Difference, ...]  # of variants: what was measured
    left: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()
    unrecorded: tuple[str, ...] = ()  # keys without a value on any node, on either side

    @property
    def is_empty(self) -> bool:
        """Whether no change is known."""
        return not (self.tags or self.programs or self.left or self.joined)


def compare_states(
    extracts: Sequence[Extract], begin: int, index: int, variants: Iterable[str]
) -> StateChange:
    """Compare the sessions from `index` on with those between `begin` and it."""
    before = extracts[max(begin, index - WINDOW) : index][::-1]
    after = extracts[index : index + WINDOW]
    ours, theirs = find_first_states(before), find_first_states(after)
    common = [node for node in ours if node in theirs]
    return StateChange(
        nodes=len(common),
        tags=group_differences({node: (ours[node], theirs[node]) for node in common}),
        programs=group_differences(
            {
                variant: (states[0], states[1])
                for variant in sorted(set(variants))
                if len(states := find_program_changes(variant, before, after)) == 2
            }
        ),
        left=find_exclusive_nodes(before, after),
        joined=find_exclusive_nodes(after, before),
        unrecorded=find_unrecorded_keys([*ours.values(), *theirs.values()]),
    )


def find_first_states(extracts: Iterable[Extract]) -> dict[str, State]:
    """Return the state of each node in the first session that has it."""
    found: dict[str, State] = {}
    for extract in extracts:
        for node, state in extract.states.items():
            found.setdefault(node, state)
    return found


def find_program_changes(
    variant: str, before: Sequence[Extract], after: Sequence[Extract]
) -> list[State]:
    """Return what was measured before and after; fewer than two if a side did not measure it."""
    sides = (
        next((one.programs[variant] for one in side if variant in one.programs), None)
        for side in (before, after)
    )
    return [state for state in sides if state is not None]


def group_differences(pairs: Mapping[str, tuple[State, State]]) -> tuple[Difference, ...]:
    """Return the differences by key and values with their owners; those of most owners first."""
    owners: dict[tuple[str, str | None, str | None], list[str]] = {}
    for owner, states in pairs.items():
        for key in find_different_keys(*states):
            before, after = (state.get(key) for state in states)
            owners.setdefault((key, before, after), []).append(owner)
    found = [Difference(*key, tuple(sorted(names))) for key, names in owners.items()]
    return tuple(sorted(found, key=lambda one: (-len(one.owners), key_rank(one.key), one.owners)))


def find_different_keys(before: State, after: State) -> set[str]:
    """Return the keys whose values differ.

    A value that is unknown on a side is no difference. Nor is a key that only one side has, if
    different versions of Steelyard recorded the two. If a change of one key implies that of another
    (`kernel.release` that of `kernel.version`), only the former is returned.
    """
    keys = before.keys() & after.keys()
    if before.get(VERSION) == after.get(VERSION):
        keys = before.keys() | after.keys()
    found = {key for key in keys if before.get(key) != after.get(key)}
    known = {key for key in found if not is_unknown(key, before) and not is_unknown(key, after)}
    return {key for key in known if IMPLIED_BY.get(key) not in known}


def is_unknown(key: str, state: State) -> bool:
    """Return whether the value could not be read; an absent key has no value to be read."""
    return key in state and state[key] is None


def key_rank(key: str) -> tuple[int, str]:
    """Return the sort key in which a reader looks for a cause; a user's own tags are first."""
    return PLACES.get(key, -1 if tag_label(key) == key else len(PLACES)), key


def find_exclusive_nodes(here: Sequence[Extract], there: Sequence[Extract]) -> tuple[str, ...]:
    """Return nodes that every session on this side used, and none on the other."""
    sides = [[one.states.keys() for one in side if one.states] for side in (here, there)]
    if len(sides[0]) < SURE_SESSIONS or not sides[1]:
        return ()
    always = set(sides[0][0]).intersection(*sides[0][1:])
    return tuple(sorted(always.difference(*sides[1])))


def find_unrecorded_keys(states: Sequence[State]) -> tuple[str, ...]:
    """Return keys that some state has, but that no state has a value of."""
    keys = {key for state in states for key in state}
    unknown = [key for key in keys if all(state.get(key) is None for state in states)]
    return tuple(sorted(unknown, key=key_rank))
