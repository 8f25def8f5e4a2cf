r"""Tables for a paper: LaTeX with booktabs and longtable, one file a table, read by \input.

The preamble needs \usepackage{booktabs,longtable,textcomp} and UTF-8 (the default since 2018).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from steelyard.analysis.figures.drawing import make_slug
from steelyard.analysis.report.latency_share import build_split_section
from steelyard.analysis.report.scaling import build_scaling_section
from steelyard.analysis.report.slopes import build_slope_table
from steelyard.analysis.report.tables import Table, format_label, format_p
from steelyard.analysis.report.tolerated_levels import build_tolerance_section
from steelyard.analysis.stats.number_format import (
    MISSING,
    choose_prefix,
    count_common_decimals,
    format_number,
)
from steelyard.analysis.stats.overhead_verdict import format_percent
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.summary import Summary, is_main

# The ten special characters of TeX (Knuth, The TeXbook, chapter 7), and the characters beyond ASCII
# in our texts.
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
    "|": r"\textbar{}",  # a dash in TeX's oldest encoding
    "−": "$-$",
    "±": r"$\pm$",
    "…": r"\ldots{}",
    "–": r"\textendash{}",
    "·": r"$\cdot$",
    "×": r"$\times$",
    "µ": r"\textmu{}",
    "ρ": r"$\rho$",
}
TABLE = str.maketrans(ESCAPES)

SLOPES = "Slopes over numeric factors, with 95 % intervals"
SCALING = "Scaling: speed-up and efficiency against the smallest scale, with 95 % intervals"
SHARES = "Shares of latency and of throughput in differences of time, with 95 % intervals: a model"


LINE = 96  # letters across a page
BETWEEN = 2.4  # letters' width between columns
SHORT, WIDE = 16, 40  # letters of a column that is never broken; most that count for its share


def escape_latex(text: str) -> str:
    """Escape text so that LaTeX prints it unchanged, including `--` and a leading `%`."""
    text = re.sub("-(?=-)", "-{}", text.translate(TABLE))
    return re.sub(r"(?<=\d) (?=\\%)", r"\,", text)


def format_breakable(text: str) -> str:
    """Return escaped text that is set flush left and may also break after `, = / : -`."""
    parts = re.split(r"(?<=[,=/:-])(?=[^ ])", text)
    return r"\raggedright " + r"\allowbreak{}".join(map(escape_latex, parts))


def compute_column_shares(letters: Sequence[int], columns: str) -> list[float]:
    """Return each column's share of the page's width; 0 means its natural width.

    All shares are 0 if the table fits. Only columns of text break lines.
    """
    if sum(letters) + BETWEEN * len(letters) <= LINE:
        return [0.0] * len(letters)
    counted = [
        min(n, WIDE) if n > SHORT and column == "l" else 0
        for n, column in zip(letters, columns, strict=True)
    ]
    fixed_letters = sum(n for n, share in zip(letters, counted, strict=True) if not share)
    taken = fixed_letters + BETWEEN * len(letters)
    remaining = max(1 - taken / LINE, 0.2)
    return [remaining * n / (sum(counted) or 1) for n in counted]


def build_latex_tables(summary: Summary) -> dict[str, str]:
    """Return tables by file name without .tex.

    There are overheads and means of each variant, slopes, tolerances, scaling and shares.
    """
    found: dict[str, str] = {}
    for variant in summary.variants:
        rows = [row for row in summary.rows if row.group.variant == variant and is_main(row)]
        compared = [row for row in rows if row.verdict is not None and row.values]
        if compared:
            found[make_slug("overheads", variant)] = overhead_table(variant, compared)
        known = [row for row in rows if row.values]
        if known:
            found[make_slug("means", variant)] = mean_table(variant, known)
    slopes, split = build_slope_table(summary), build_split_section(summary)
    if slopes is not None:
        found["slopes"] = format_plain_table("slopes", SLOPES, slopes)
    far = build_tolerance_section(summary)
    if far is not None:
        found["tolerances"] = format_plain_table("tolerances", far["caption"], far["table"])
    scaling = build_scaling_section(summary)
    if scaling is not None:
        found["scaling"] = format_plain_table("scaling", SCALING, scaling.table)
    if split is not None:
        found["shares"] = format_plain_table("shares", SHARES, split["table"])
    return found


def format_plain_table(name: str, caption: str, found: Table) -> str:
    """Format one of the page's tables with unchanged cells."""
    return format_table(name, "", caption, found.headings, "l" * len(found.headings), found.rows)


def overhead_table(variant: str, rows: Sequence[Row]) -> str:
    caption = (
        f"{variant}: overhead against the baseline with its 95 % interval, p of the test of the "
        "means after Holm's correction, and runs of the condition + of the baseline"
    )
    headings = ("Condition", "Metric", "Overhead (%)", "95 % interval", "$p$", "$n$", "Verdict")
    margin = next((row.margin for row in rows if row.margin is not None), None)
    if margin is not None:
        caption += (
            f"; equivalent: shown to be within ± {100 * margin:g} % by two one-sided tests; "
            "non-inferior: by the one towards the worse side alone; corrected likewise"
        )
    return format_table(
        "overheads", variant, caption, headings, "llrrrrl", map(overhead_cells, rows)
    )


def overhead_cells(row: Row) -> tuple[str, ...]:
    found = row.overhead
    value = ends = MISSING
    if found and found.value is not None and found.low is not None and found.high is not None:
        value = format_percent(found.value, found.low, found.high)
        low, high = (format_percent(end, found.low, found.high) for end in (found.low, found.high))
        ends = f"{low} … {high}" if found.low < found.high else MISSING  # no spread, no interval
    n = f"{row.n} + {found.n_baseline}" if found else str(row.n)
    verdict = row.verdict.direction.value if row.verdict else MISSING
    return (
        row.group.label or "all runs",
        row.metric.name,
        value,
        ends,
        format_p(row.p),
        n,
        verdict,
    )


def mean_table(variant: str, rows: Sequence[Row]) -> str:
    caption = f"{variant}: means over runs with 95 % confidence intervals (Student)"
    headings = ("Condition", "Metric", "Unit", "Mean", "95 % interval", "Median", "Sd", "$n$")
    largest: dict[str, float] = {}  # so that a metric has one unit under all conditions
    for row in rows:
        name, mean = row.metric.name, row.interval.mean if row.interval else 0.0
        largest[name] = max(largest.get(name, 0.0), abs(mean))
    cells = (
        mean_cells(row, *choose_prefix(largest[row.metric.name], row.metric.unit)) for row in rows
    )
    return format_table("means", variant, caption, headings, "lllrrrrr", cells)


def mean_cells(row: Row, factor: float, unit: str) -> tuple[str, ...]:
    interval = row.interval
    assert interval is not None and row.spread is not None  # rows without values are left out
    places = count_common_decimals([interval], factor)
    mean, median, sd = (
        format_number(value, factor, places) for value in (interval.mean, row.median, row.spread.sd)
    )
    ends = MISSING
    if interval.low is not None:
        ends = f"{format_number(interval.low, factor, places)} … {format_number(interval.high, factor, places)}"
    return (format_label(row.group), row.metric.name, unit, mean, ends, median, sd, str(row.n))


def format_table(
    kind: str,
    variant: str,
    caption: str,
    headings: Sequence[str],
    columns: str,
    cells: Iterable[tuple[str, ...]],
) -> str:
    """Format a longtable, which may continue over pages; `columns` are `l` or `r`.

    Long columns break lines.
    """
    rows = list(cells)
    letters = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    shares = compute_column_shares(letters, columns)
    places = [rf"p{{{s:.2f}\linewidth}}" if s else c for s, c in zip(shares, columns, strict=True)]
    ways = [format_breakable if share else escape_latex for share in shares]
    end = r"\tabularnewline" if any(shares) else r"\\"  # raggedright has its own \\
    heading = " & ".join(h if h.startswith("$") else escape_latex(h) for h in headings)
    lines = [
        r"% \usepackage{booktabs,longtable,textcomp}",
        rf"\begin{{longtable}}{{{''.join(places)}}}",
        rf"\caption{{{escape_latex(caption)}}}\label{{tab:{make_slug(kind, variant)}}}\\",
        r"\toprule",
        rf"{heading} \\",
        r"\midrule",
        r"\endhead",
        *(" & ".join(w(c) for w, c in zip(ways, row, strict=True)) + f" {end}" for row in rows),
        r"\bottomrule",
        r"\end{longtable}",
    ]
    return "\n".join(lines) + "\n"
