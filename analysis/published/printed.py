"""The numbers that a paper prints beside those of a study: the same row of its table, our interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.analysis.published.facts import Known, fact_words, fits, other_sizes, telling
from steelyard.analysis.published.paper import PrintedValue
from steelyard.analysis.report.tables import Table
from steelyard.analysis.stats.readable import MISSING, decimals, text
from steelyard.analysis.summary.summary import Row

HEADINGS = (
    "Where", "What", "Printed", "Ours (95 % interval)", "n", "Ours / printed", "Not as printed", "Our runs",
)  # fmt: skip
NOT_RUN = "the paper: cannot be executed"


@dataclass(frozen=True, slots=True)
class Beside:
    """A printed number and the row of ours that measures the same; None: there is none."""

    value: PrintedValue
    row: Row | None
    remark: str  # sizes that are not the paper's; without a row: what is missing

    @property
    def ours(self) -> tuple[float | None, float | None, float | None]:
        """(mean, low, high) in the paper's unit."""
        interval = self.row and self.row.interval
        if not interval:
            return None, None, None
        found = (interval.mean, interval.low, interval.high)
        mean, low, high = (None if v is None else v * self.value.scale for v in found)
        return mean, low, high


def beside_values(known: Known, values: Sequence[PrintedValue]) -> list[Beside]:
    """Each printed number; where several of our rows fit, one line for each."""
    return [found for value in values for found in beside_value(known, value)]


def beside_value(known: Known, value: PrintedValue) -> list[Beside]:
    """The paper's own sizes alone, where the study has them."""
    rows = [r for r in known.rows.get(value.metric, []) if fits(known.of_row(r), value.facts)]
    if not rows:
        return [Beside(value, None, missing(known, value))]
    exact = [row for row in rows if fits(known.of_row(row), value.size)]
    return [
        Beside(value, row, ", ".join(other_sizes(known.of_row(row), value.size)))
        for row in exact or rows
    ]


def missing(known: Known, value: PrintedValue) -> str:
    """What a study lacks for it."""
    absent = {
        name: wanted
        for name, wanted in value.facts.items()
        if not any(fits(facts, {name: wanted}) for facts in known.facts.values())
    }
    if absent:
        return f"no runs with {fact_words(absent)}"
    if not any(fits(facts, value.facts) for facts in known.facts.values()):
        return f"no runs that have all of {fact_words(telling(known, value.facts))}"
    return f"no values of {value.metric}"


def printed_tables(found: Sequence[Beside]) -> list[tuple[str, Table]]:
    """A table of the paper's each, as far as the study has anything of it."""
    tables = []
    for title in dict.fromkeys(one.value.table for one in found):
        members = [one for one in found if one.value.table == title]
        measured = [one for one in members if one.row is not None]
        if measured:
            tables.append((title, Table(HEADINGS, [cells(one) for one in measured])))
    return tables


def left_out(found: Sequence[Beside]) -> list[str]:
    """What of each table the study has not, and why, in a sentence each."""
    sentences = []
    for title in dict.fromkeys(one.value.table for one in found):
        members = [one for one in found if one.value.table == title]
        absent = [one for one in members if one.row is None]
        if absent:
            reasons = list(dict.fromkeys(one.remark for one in absent))
            more = f" and {len(reasons) - 3} more reasons" if len(reasons) > 3 else ""
            sentences.append(
                f"{title}: {len(absent)} of {len(members)} numbers have nothing beside them: "
                f"{'; '.join(reasons[:3])}{more}. To ask for them: {files_of(absent)}."
            )
    return sentences


def files_of(found: Sequence[Beside]) -> str:
    """The example studies that measure such numbers."""
    return ", ".join(dict.fromkeys(f"{name}.toml" for one in found for name in one.value.studies))


def cells(one: Beside) -> tuple[str, ...]:
    """`container · cpu · CG.B`, `time ms`, both numbers, their ratio, whose ours are."""
    value, (mean, low, high) = one.value, one.ours
    assert one.row is not None
    printed = NOT_RUN if value.printed is None else f"{value.printed:g} {value.unit}"
    return (
        " · ".join(value.place),
        value.column.replace("_", " "),
        printed,
        ours_words(mean, low, high, value.unit),
        one.row.n_words,
        ratio_words(mean, value.printed),
        one.remark,
        one.row.group.label,
    )


def ours_words(mean: float | None, low: float | None, high: float | None, unit: str) -> str:
    """`71.2 (70.1 … 72.3) %`."""
    if mean is None:
        return MISSING
    half = None if low is None or high is None else (high - low) / 2
    places = decimals(mean, half)
    ends = "" if half is None else f" ({text(low, 1, places)} … {text(high, 1, places)})"
    return f"{text(mean, 1, places)}{ends} {unit}"


def ratio_words(mean: float | None, printed: float | None) -> str:
    """`0.93`."""
    return MISSING if mean is None or not printed else f"{mean / printed:.3g}"


def value_document(one: Beside) -> dict[str, object]:
    """For JSON."""
    mean, low, high = one.ours
    value, row = one.value, one.row
    return {
        "table": value.table,
        "place": list(value.place),
        "column": value.column,
        "unit": value.unit,
        "printed": value.printed,
        "variant": row and row.group.variant,
        "condition": row and row.group.label,
        "metric": value.metric,
        "mean": mean,
        "low": low,
        "high": high,
        "n": row.n if row else 0,
        "remark": one.remark,
    }
