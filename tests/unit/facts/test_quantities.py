"""facts/quantities.def: C and Python read the same, and it is in itself without contradiction."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from steelyard.facts import quantities
from steelyard.facts.quantities import COLUMNS, METRICS, TOTALS, Column, Total

ROOT = Path(__file__).resolve().parents[3]
KINDS = {"CLOCK", "COUNTER", "GAUGE"}
WHOSE = {"NODE", "PROCESSES", "REAPED", "SAMPLER"}
OVER_NODES = {"SUM", "LARGEST"}
# Cells that are filled in a loop from this one on.
FIRST_OF = {
    **dict.fromkeys(("WCHAR", "READ", "WRITE"), "RCHAR"),
    **dict.fromkeys(("PRESSURE_IO", "PRESSURE_MEMORY"), "PRESSURE_CPU"),
}
# Whose last value is a total, and whose largest is.
KINDS_OF = {"LAST": {"COUNTER", "CLOCK"}, "LARGEST": {"GAUGE"}}
TOLD_IN = {"RECORD", "DATABASE", "COMMENT", "BOTH", "METRIC"}


def test_every_row_is_read() -> None:
    text = (ROOT / "facts" / "quantities.def").read_text(encoding="utf-8")
    assert len(re.findall(r"^COLUMN\(", text, re.MULTILINE)) == len(COLUMNS)
    assert len(re.findall(r"^TOTAL\(", text, re.MULTILINE)) == len(TOTALS)


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_columns(column: Column) -> None:
    assert column.kind in KINDS and column.unit in quantities.UNITS.values() and column.meaning
    named = FIRST_OF.get(column.cell, column.cell)
    text = (ROOT / "plugins" / "node" / column.filled_by).read_text(encoding="utf-8")
    assert f"SY_{named}" in text


@pytest.mark.parametrize("total", TOTALS.values(), ids=lambda total: total.name)
def test_totals(total: Total) -> None:
    assert total.whose in WHOSE and total.reported_in in TOLD_IN and total.over_nodes in OVER_NODES
    assert total.unit in quantities.UNITS.values() and total.words and total.meaning
    of_cell = [column for column in COLUMNS if column.cell == total.cell]
    assert [c.unit for c in of_cell] == ([] if total.cell == "NO_CELL" else [total.unit])
    assert {c.kind for c in of_cell} <= KINDS_OF[total.over_time]


def test_names_are_unlike() -> None:
    assert len({c.name for c in COLUMNS}) == len({c.cell for c in COLUMNS}) == len(COLUMNS)
    assert len({t.path for t in TOTALS.values()}) == len({t.id for t in TOTALS.values()})
    shown = [t.run_name for t in METRICS.values() if t.run_name]
    assert len(set(shown)) == len(shown)


def test_a_section_of_the_record_is_the_nodes_or_the_jobs() -> None:
    """AdminComment tells it of the section: `energy_scope`, which is not of the job's GPUs."""
    whose: dict[str, set[bool]] = {}
    for total in TOTALS.values():
        if total.in_comment and total.name != "gpu_energy_j":
            whose.setdefault(total.path.partition(".")[0], set()).add(total.is_of_node)
    assert {section: len(found) for section, found in whose.items()} == dict.fromkeys(whose, 1)
