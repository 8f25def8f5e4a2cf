"""Reads netem_keys.def: every value of a netem specification."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from steelyard.facts.rows import rows, text_of


@dataclass(frozen=True, slots=True)
class Value:
    """One of them; what the columns may hold stands at the head of netem_keys.def."""

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
    policy: str  # key of the policy; empty without a bound
    default: str  # there, in us, ppb, bit/s or packets
    word: str
    back: str
    source: str
    words: str  # `{}`: the value; empty: told with another one
    does: str
    values: str


def read(text: str) -> Iterator[Value]:
    """Each value; ValueError names a row that lacks a column."""
    for row, cells in rows(text):
        if len(cells) != len(fields(Value)) - 1:
            raise ValueError(f"netem_keys.def: {row}({cells[0]}, …: {len(cells)} columns")
        yield Value(row, *cells)


VALUES = tuple(read(text_of("netem_keys.def")))
