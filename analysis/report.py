"""The report: one HTML file that opens offline, without scripts, and prints well."""

from __future__ import annotations

import html
import importlib.resources
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from steelyard.analysis import report_tables as tables
from steelyard.analysis import report_words as words
from steelyard.analysis.errors import MissingError
from steelyard.analysis.figures import FORMATS, Drawing, inline_svg, save
from steelyard.analysis.report_environment import facts, program_table, tag_table
from steelyard.analysis.report_network import network_part
from steelyard.analysis.report_parts import Extra
from steelyard.analysis.report_slopes import slope_table
from steelyard.analysis.report_split import split_part
from steelyard.analysis.summary import Row, Summary
from steelyard.analysis.summary_codes import Finding
from steelyard.analysis.summary_findings import find

MAX_VARIANTS_DRAWN = 12  # figures of more would take the report beyond its size and time
MAX_PLACES = 30
MAX_GAPS = 200


def write_report(
    summary: Summary,
    output: Path,
    figures: Path | None = None,
    formats: Sequence[str] = FORMATS,
    extra: Extra | None = None,
    findings: Sequence[Finding] | None = None,
) -> list[Path]:
    """Write the report, and its figures into a folder of their own; returns all paths written.

    `findings`: those of the summary where they are known already (they take time).
    """
    drawings = draw_all(summary, summary.variants if figures else drawn_variants(summary))
    rtt = draw_rtt(summary) if summary.data.network else None
    if findings is None:
        findings = extra.findings if extra else find(summary)
    page = render(summary, findings, drawings, rtt, extra)
    try:
        write_whole(output, page)
        paths = [output]
        if figures is not None:
            every = [drawing for drawn in drawings.values() for drawing in drawn]
            every += [rtt] if rtt is not None else []
            every += [d for part in (extra.sections if extra else ()) for d in part.drawings]
            paths += [path for drawing in every for path in save(drawing, figures, formats)]
    except OSError as error:
        where = error.filename or output
        raise MissingError(
            f"{where} cannot be written: {error.strerror}; choose another place with -o"
        ) from error
    return paths


def write_whole(path: Path, text: str) -> None:
    """The file as a whole or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:  # nobody knows the other name
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        part.unlink(missing_ok=True)


def drawn_variants(summary: Summary) -> list[str]:
    return summary.variants[:MAX_VARIANTS_DRAWN]


def draw_all(summary: Summary, variants: list[str]) -> dict[str, list[Drawing]]:
    """The figures of each variant."""
    # Heavy; not needed by whoever only wants words.
    from steelyard.analysis.figures_bars import draw_bars
    from steelyard.analysis.figures_factors import draw_factors
    from steelyard.analysis.figures_series import draw_series
    from steelyard.analysis.figures_time import draw_times

    drawings: dict[str, list[Drawing]] = {variant: [] for variant in variants}
    for variant in variants:
        for rows in metric_rows(summary, variant, primary=True):
            drawings[variant] += [draw_bars(summary, rows), draw_series(summary, rows)]
        drawings[variant] += draw_factors(summary, variant)
    for variant, drawing in draw_times(summary, variants):
        drawings[variant].append(drawing)
    return drawings


def all_drawings(summary: Summary) -> list[Drawing]:
    """Every figure of every variant, and the round-trip times."""
    drawings = [d for drawn in draw_all(summary, summary.variants).values() for d in drawn]
    rtt = draw_rtt(summary) if summary.data.network else None
    return drawings if rtt is None else [*drawings, rtt]


def metric_rows(summary: Summary, variant: str, primary: bool | None = None) -> Iterator[list[Row]]:
    """The rows of each metric of a variant, over the conditions."""
    by_metric: dict[str, list[Row]] = {}
    for row in summary.rows:
        if row.group.variant == variant and primary in (None, row.metric.is_primary):
            by_metric.setdefault(row.metric.name, []).append(row)
    yield from by_metric.values()


def draw_rtt(summary: Summary) -> Drawing | None:
    """The study's round-trip times."""
    from steelyard.analysis import figures_rtt

    return figures_rtt.draw_rtt(summary)


def render(
    summary: Summary,
    findings: Sequence[Finding],
    drawings: dict[str, list[Drawing]],
    rtt: Drawing | None = None,
    extra: Extra | None = None,
) -> str:
    """The page."""
    import jinja2

    folder = importlib.resources.files("steelyard.analysis")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["svg"] = inline_svg
    environment.filters["cells"] = cells
    environment.filters["prose"] = prose
    template = environment.from_string(folder.joinpath("report.html.j2").read_text("utf-8"))
    css = folder.joinpath("report.css").read_text("utf-8")
    whole = context(summary, findings, drawings, extra)
    return template.render(css=css, rtt=rtt, **whole)


def cells(row: Sequence[str]) -> Markup:
    """A row of the table of runs, the longest of all: escaped here, in a quarter of jinja's time."""
    return Markup("</td><td>".join([html.escape(cell, quote=False) for cell in row]))


def prose(text: str) -> Markup:
    """Text for the page: `code` in its own font, and no line break inside `37 %` or `n = 5 + 5`."""
    held = re.sub(r"(?<=\d) (?=%)|(?<=\bn) (?==)|(?<==) (?=\d)|(?<=\d) (?=\+ \d)", "\u00a0", text)
    held = re.sub(r"(?<=\d\u00a0\+) (?=\d)", "\u00a0", held)
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(held))))


def context(
    summary: Summary,
    findings: Sequence[Finding],
    drawings: dict[str, list[Drawing]],
    extra: Extra | None,
) -> dict[str, Any]:
    """All that the template sets."""
    data, anchors = summary.data, tables.run_anchors(summary)
    return {
        "meta": data.meta,
        "when": extra.when
        if extra
        else f"Collected {tables.moment(data.meta.collected_unix_s)} UTC",
        "answer": extra.answer if extra else words.answer(summary),
        "sections": extra.sections if extra else [],
        "redo": extra.redo if extra else redo_commands(data.meta.study),
        "asked": tables.asked_table(summary),
        "overhead_headings": tables.OVERHEAD_HEADINGS,
        "overheads": tables.overhead_groups(summary, anchors),
        "nodes": tables.node_table(summary),
        "tags": tag_table(summary),
        "programs": program_table(summary),
        "network": network_part(summary),
        "slopes": slope_table(summary),
        "split": split_part(summary),
        "variants": [
            variant_part(summary, variant, drawings.get(variant, []), anchors)
            for variant in summary.variants
        ],
        "undrawn": len(summary.variants) - len(drawings),
        "findings": findings,
        "max_places": MAX_PLACES,
        "gap_counts": tables.gap_counts(data),
        "gaps": tables.gap_table(data, MAX_GAPS),
        "gaps_left_out": max(len(data.gaps) - MAX_GAPS, 0),
        "facts": facts(summary),
    }


def redo_commands(study: str) -> list[str]:
    """What is typed once the study file is there."""
    return [
        f"steelyard submit {study}.toml",
        f"steelyard status {study}.toml --watch",
        f"steelyard collect {study}.toml",
        f"steelyard report {study}.toml",
    ]


def variant_part(
    summary: Summary, variant: str, drawings: list[Drawing], anchors: tables.Anchors
) -> dict[str, Any]:
    """One variant's overheads, figures, tables and runs."""
    rows_of_metrics = list(metric_rows(summary, variant))
    known = [rows for rows in rows_of_metrics if any(row.values for row in rows)]
    unknown = [rows[0].metric.name for rows in rows_of_metrics if rows not in known]
    every = [(rows[0], *tables.metric_table(rows, anchors)) for rows in known]
    return {
        "name": variant,
        "drawings": drawings,
        "main": [entry for entry in every if words.is_main(entry[0])],
        "others": [entry for entry in every if not words.is_main(entry[0])],
        "unknown": unknown,
        "no_time": bool(drawings and summary.data.records)
        and not any(d.name.startswith("time-") for d in drawings),
        "inside": summary.data.repeated.get(variant, 1),
        "run_headings": tables.run_headings(summary, variant),
        "run_groups": list(tables.run_groups(summary, variant, anchors)),
    }
