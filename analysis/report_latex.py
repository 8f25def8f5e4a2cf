r"""Tables for a paper: LaTeX with booktabs and longtable, one file a table, read by \input.

The preamble needs \usepackage{booktabs,longtable,textcomp} and UTF-8 (the default since 2018).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from steelyard.analysis.figures import slug
from steelyard.analysis.quantities import MISSING, decimals, scale, text
from steelyard.analysis.report_tables import label_of, p_text
from steelyard.analysis.report_words import is_main
from steelyard.analysis.stats_overhead import percent
from steelyard.analysis.summary import Row, Summary

# The ten special characters of TeX (Knuth, The TeXbook, chapter 7), and what our words hold
# beyond ASCII.
ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "−": "$-$",
    "±": r"$\pm$",
    "…": r"\ldots{}",
    "–": "--",
    "·": r"$\cdot$",
    "×": r"$\times$",
    "µ": r"\textmu{}",
    "ρ": r"$\rho$",
}
TABLE = str.maketrans(ESCAPES)


def escaped(words: str) -> str:
    """Text that LaTeX prints as it is."""
    return words.translate(TABLE)


def latex_tables(summary: Summary) -> dict[str, str]:
    """File name (without .tex) -> table: overheads of each variant, and the means of its figures."""
    found: dict[str, str] = {}
    for variant in summary.variants:
        rows = [row for row in summary.rows if row.group.variant == variant and is_main(row)]
        compared = [row for row in rows if row.verdict is not None and row.values]
        if compared:
            found[slug("overheads", variant)] = overhead_table(variant, compared)
        known = [row for row in rows if row.values]
        if known:
            found[slug("means", variant)] = mean_table(variant, known)
    return found


def overhead_table(variant: str, rows: Sequence[Row]) -> str:
    caption = (
        f"{variant}: overhead against the baseline, its 95 % interval (bootstrap over runs), and p "
        "of Welch's test after Holm's correction"
    )
    headings = ("Condition", "Metric", "Overhead (%)", "95 % interval", "$p$", "$n$")
    return table("overheads", variant, caption, headings, "llrrrr", map(overhead_cells, rows))


def overhead_cells(row: Row) -> tuple[str, ...]:
    found = row.overhead
    value = ends = MISSING
    if found and found.value is not None and found.low is not None and found.high is not None:
        value = percent(found.value, found.low, found.high)
        low, high = (percent(end, found.low, found.high) for end in (found.low, found.high))
        ends = f"{low} … {high}"
    n = f"{row.n} + {found.n_baseline}" if found else str(row.n)
    return (row.group.label or "all runs", row.metric.name, value, ends, p_text(row.p), n)


def mean_table(variant: str, rows: Sequence[Row]) -> str:
    caption = f"{variant}: means over runs with 95 % confidence intervals (Student)"
    headings = ("Condition", "Metric", "Unit", "Mean", "95 % interval", "Median", "Sd", "$n$")
    return table("means", variant, caption, headings, "lllrrrrr", map(mean_cells, rows))


def mean_cells(row: Row) -> tuple[str, ...]:
    interval = row.interval
    assert interval is not None and row.spread is not None  # rows without values are left out
    factor, unit = scale(interval.mean, row.metric.unit)
    half = interval.half_width
    places = decimals(interval.mean / factor, half and half / factor)
    mean, median, sd = (
        text(value, factor, places) for value in (interval.mean, row.median, row.spread.sd)
    )
    ends = MISSING
    if interval.low is not None:
        ends = f"{text(interval.low, factor, places)} … {text(interval.high, factor, places)}"
    return (label_of(row.group), row.metric.name, unit, mean, ends, median, sd, str(row.n))


def table(
    kind: str,
    variant: str,
    caption: str,
    headings: Sequence[str],
    columns: str,
    rows: Iterator[tuple[str, ...]],
) -> str:
    """A longtable: it may go on over pages."""
    heading = " & ".join(h if h.startswith("$") else escaped(h) for h in headings)
    lines = [
        r"% \usepackage{booktabs,longtable,textcomp}",
        rf"\begin{{longtable}}{{{columns}}}",
        rf"\caption{{{escaped(caption)}}}\label{{tab:{slug(kind, variant)}}}\\",
        r"\toprule",
        rf"{heading} \\",
        r"\midrule",
        r"\endhead",
        *(" & ".join(map(escaped, row)) + r" \\" for row in rows),
        r"\bottomrule",
        r"\end{longtable}",
    ]
    return "\n".join(lines) + "\n"
