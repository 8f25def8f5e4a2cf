"""The report: one HTML file that opens offline, without scripts, and prints well."""

from __future__ import annotations

import importlib.metadata
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
from steelyard.analysis.quantities import MISSING
from steelyard.analysis.summary import Row, Summary
from steelyard.analysis.summary_codes import Finding
from steelyard.analysis.summary_findings import find
from steelyard.analysis.summary_read import SCHEMA_VERSION

MAX_VARIANTS_DRAWN = 12  # figures of more would take the report beyond its size and time
MAX_PLACES = 30
MAX_GAPS = 200


def write_report(
    summary: Summary,
    output: Path,
    figures: Path | None = None,
    formats: Sequence[str] = FORMATS,
) -> list[Path]:
    """Write the report, and its figures into a folder of their own; returns all paths written."""
    drawings = draw_all(summary, summary.variants if figures else drawn_variants(summary))
    page = render(summary, find(summary), drawings)
    try:
        write_whole(output, page)
        paths = [output]
        if figures is not None:
            every = (drawing for drawn in drawings.values() for drawing in drawn)
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
    finally:
        part.unlink(missing_ok=True)


def drawn_variants(summary: Summary) -> list[str]:
    return summary.variants[:MAX_VARIANTS_DRAWN]


def draw_all(summary: Summary, variants: list[str]) -> dict[str, list[Drawing]]:
    """The figures of each variant."""
    # Heavy; not needed by whoever only wants words.
    from steelyard.analysis.figures_bars import draw_bars
    from steelyard.analysis.figures_series import draw_series
    from steelyard.analysis.figures_time import draw_times

    drawings: dict[str, list[Drawing]] = {variant: [] for variant in variants}
    for variant in variants:
        for rows in metric_rows(summary, variant, primary=True):
            drawings[variant] += [draw_bars(summary, rows), draw_series(summary, rows)]
    for variant, drawing in draw_times(summary, variants):
        drawings[variant].append(drawing)
    return drawings


def metric_rows(summary: Summary, variant: str, primary: bool | None = None) -> Iterator[list[Row]]:
    """The rows of each metric of a variant, over the conditions."""
    by_metric: dict[str, list[Row]] = {}
    for row in summary.rows:
        if row.group.variant == variant and primary in (None, row.metric.is_primary):
            by_metric.setdefault(row.metric.name, []).append(row)
    yield from by_metric.values()


def render(summary: Summary, findings: list[Finding], drawings: dict[str, list[Drawing]]) -> str:
    """The page."""
    import jinja2

    folder = importlib.resources.files("steelyard.analysis")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["svg"] = inline_svg
    environment.filters["prose"] = prose
    template = environment.from_string(folder.joinpath("report.html.j2").read_text("utf-8"))
    css = folder.joinpath("report.css").read_text("utf-8")
    return template.render(css=css, **context(summary, findings, drawings))


def prose(text: str) -> Markup:
    """Text for the page: `code` in its own font, and no line break inside `37 %` or `n = 5 + 5`."""
    held = re.sub(r"(?<=\d) (?=%)|(?<=\bn) (?==)|(?<==) (?=\d)|(?<=\d) (?=\+ \d)", "\u00a0", text)
    held = re.sub(r"(?<=\d\u00a0\+) (?=\d)", "\u00a0", held)
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(held))))


def context(
    summary: Summary, findings: list[Finding], drawings: dict[str, list[Drawing]]
) -> dict[str, Any]:
    """All that the template sets."""
    data = summary.data
    return {
        "meta": data.meta,
        "collected": tables.moment(data.meta.collected_unix_s),
        "answer": words.answer(summary),
        "asked": tables.asked_table(summary),
        "overhead_headings": tables.OVERHEAD_HEADINGS,
        "overheads": tables.overhead_groups(summary),
        "nodes": tables.node_table(summary),
        "variants": [variant_part(summary, v, drawings.get(v, [])) for v in summary.variants],
        "undrawn": len(summary.variants) - len(drawings),
        "findings": findings,
        "max_places": MAX_PLACES,
        "gap_counts": tables.gap_counts(data),
        "gaps": tables.gap_table(data, MAX_GAPS),
        "gaps_left_out": max(len(data.gaps) - MAX_GAPS, 0),
        "facts": facts(summary),
    }


def variant_part(summary: Summary, variant: str, drawings: list[Drawing]) -> dict[str, Any]:
    """One variant's overheads, figures, tables and runs."""
    rows_of_metrics = list(metric_rows(summary, variant))
    known = [rows for rows in rows_of_metrics if any(row.values for row in rows)]
    unknown = [rows[0].metric.name for rows in rows_of_metrics if rows not in known]
    every = [(rows[0], *tables.metric_table(rows)) for rows in known]
    return {
        "name": variant,
        "drawings": drawings,
        "main": [entry for entry in every if words.is_main(entry[0])],
        "others": [entry for entry in every if not words.is_main(entry[0])],
        "unknown": unknown,
        "no_time": bool(drawings) and not any(d.name.startswith("time-") for d in drawings),
        "inside": summary.data.repeated.get(variant, 1),
        "run_headings": tables.run_headings(summary, variant),
        "run_groups": list(tables.run_groups(summary, variant)),
    }


def facts(summary: Summary) -> list[tuple[str, str]]:
    """What somebody needs who wants to get the same numbers again."""
    meta = summary.data.meta
    return [
        ("Collected by", f"steelyard {meta.steelyard}, {tables.moment(meta.collected_unix_s)} UTC"),
        ("Reported by", f"steelyard {importlib.metadata.version('steelyard')}"),
        ("Schema of the database", f"version {SCHEMA_VERSION}"),
        ("Seed of the order of runs", str(meta.seed) if meta.seed is not None else MISSING),
        ("SHA-256 of study.toml", meta.toml_sha256 or MISSING),
        ("SHA-256 of the measurements", tables.data_sha256(summary.data)),
    ]
