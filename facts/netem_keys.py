"""Reads netem_keys.def: every value of a netem specification."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from steelyard.facts.def_rows import rows, text_of


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a specification; the head of netem_keys.def explains its columns."""

    row: str  # KEY; FORM: another form of the key before it
    id: str
    key: str
    role: str  # FLAG, PART, PLACE, PLACES
    kind: str  # TIME, WHOLE_MS, PERCENT, RATE, COUNT, OWN
    grammar: str
    json: str
    example: str
    packets: str
    needs: str  # NETEM, TBF, EITHER, NOTHING
    bound: str  # MOST, LEAST, MEAN, NO
    policy: str  # key in the policy; empty: no bound
    default: str  # of the policy, in us, ppb, bit/s or packets
    word: str
    back: str
    source: str
    words: str  # `{}`: the value; empty: described with another value
    does: str
    values: str


def read(text: str) -> Iterator[Value]:
    """Yield each value; raise ValueError for a row with too few or too many columns."""
    for row, cells in rows(text):
        if len(cells) != len(fields(Value)) - 1:
            raise ValueError(f"netem_keys.def: {row}({cells[0]}, …: {len(cells)} columns")
        yield Value(row, *cells)


VALUES = tuple(read(text_of("netem_keys.def")))
