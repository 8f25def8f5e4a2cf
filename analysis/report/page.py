"""The report: one HTML file that opens offline, without scripts, and prints well."""

from __future__ import annotations

import functools
import html
import importlib.resources
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.figures.drawing import FORMATS
from steelyard.analysis.findings.finding import Finding
from steelyard.analysis.findings.registry import find_all
from steelyard.analysis.report import links, tables
from steelyard.analysis.report.answer import describe_answer
from steelyard.analysis.report.figures import (
    ANSWER,
    ENERGY,
    ROUND_TRIPS,
    SCALING,
    SCALING_NARROW,
    Draw,
    Job,
    RenderedFigure,
    draw_answer,
    figure_jobs,
    group_by_anchor,
    metric_rows,
    render_figure,
    scaling_jobs,
    start_drawing,
)
from steelyard.analysis.report.latency_share import build_split_section
from steelyard.analysis.report.network import build_network_section
from steelyard.analysis.report.node_comparisons import build_node_section
from steelyard.analysis.report.scaling import build_scaling_section, describe_numeric_optima
from steelyard.analysis.report.slopes import build_slope_table
from steelyard.analysis.report.tables import (
    Table,
    build_facts,
    build_program_table,
    build_tag_table,
)
from steelyard.analysis.report.tolerated_levels import build_tolerance_section
from steelyard.analysis.summary.optimum import find_numeric_optima
from steelyard.analysis.summary.summary import Summary, is_main

if TYPE_CHECKING:
    from jinja2 import Template

MAX_VARIANTS_DRAWN = 12  # figures of more variants would make the report too large and too slow
MAX_PLACES = 30
MAX_GAPS = 200


def write_report(
    summary: Summary,
    output: Path,
    figures: Path | None = None,
    formats: Sequence[str] = FORMATS,
    extra: Extra | None = None,
) -> tuple[list[Path], list[Finding]]:
    """Write the report, and its figures into a separate folder.

    Returns all paths written, the report's first, and the findings. Raises MissingError if
    something cannot be written.
    """
    variants = summary.variants if figures else summary.variants[:MAX_VARIANTS_DRAWN]
    jobs = [Job(ANSWER, partial(draw_answer, summary, narrow=True))]
    jobs += scaling_jobs(summary, narrow=True)
    jobs += figure_jobs(summary, variants)
    jobs += [
        Job(section.anchor, draw)
        for section in (extra.sections if extra else ())
        for draw in section.draws
    ]
    finish = partial(render_figure, folder=figures, formats=formats)
    try:
        write_file(output, None)
        if figures is not None:
            figures.mkdir(parents=True, exist_ok=True)
        with start_drawing(jobs, finish) as work:
            findings = list(extra.findings) if extra else find_all(summary)
            context = build_context(summary, findings, extra)
            results = work.results()
        write_file(output, render(context, group_by_anchor(jobs, results)))
    except OSError as error:
        where = Path(error.filename or output)
        option = "--figures" if figures is not None and where.is_relative_to(figures) else "-o"
        raise MissingError(
            f"{where} cannot be written: {error.strerror}; choose another place with {option}"
        ) from error
    return [output, *(path for figure in results if figure for path in figure.paths)], findings


def write_file(path: Path, text: str | None) -> None:
    """Write the complete file or nothing; with None only test that it can be written."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text or "", encoding="utf-8")
        if text is not None:
            temporary.replace(path)
    except OSError as error:  # the user does not know the temporary name
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        temporary.unlink(missing_ok=True)


def render(context: dict[str, Any], figures: dict[str, list[RenderedFigure]]) -> str:
    """Render the page from what build_context() returns and the figures by their places."""
    css = importlib.resources.files(__package__).joinpath("report.css").read_text("utf-8")
    variants = [entry | select_figures(entry, figures) for entry in context["variants"]]
    sections = [
        replace(entry, drawings=figures.get(entry.anchor, ())) for entry in context["sections"]
    ]
    narrow, forest = figures.get(ANSWER) or (None, None)
    cells = {
        "variants": variants,
        "sections": sections,
        "forest": forest,
        "forest_narrow": narrow,
        "energy_time": find_single_figure(figures, ENERGY),
        "rtt": find_single_figure(figures, ROUND_TRIPS),
        "scaling_figures": list(
            zip(figures.get(SCALING, ()), figures.get(SCALING_NARROW, ()), strict=True)
        ),
        "undrawn": sum(entry["name"] not in figures for entry in variants),
    }
    return load_template().render(css=css, **(context | cells))


def find_single_figure(
    figures: dict[str, list[RenderedFigure]], anchor: str
) -> RenderedFigure | None:
    """Return the figure of a place that has at most one, or None."""
    return next(iter(figures.get(anchor, ())), None)


@functools.cache
def load_template() -> Template:
    """Compile the template once per process: it takes as long as the page of a small study."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["svg"] = attrgetter("svg")
    environment.filters["cells"] = format_cells
    environment.filters["prose"] = format_prose
    text = importlib.resources.files(__package__).joinpath("report.html.j2").read_text("utf-8")
    return environment.from_string(text)


def format_cells(row: Sequence[str]) -> Markup:
    """Return a row of the table of runs, escaped here in a quarter of jinja's time."""
    return Markup("</td><td>".join([html.escape(cell, quote=False) for cell in row]))


def format_prose(text: str) -> Markup:
    """Format text for the page: `code` in its own font, no line break inside a number.

    Numbers are `37 %`, `p = 0.1`, `n = 5 + 5`.
    """
    joined = re.sub(
        r"(?<=\d) (?=%)|(?<=\b[np]) (?==)|(?<==) (?=\d)|(?<=\d) (?=\+ \d)", "\u00a0", text
    )
    joined = re.sub(r"(?<=\d\u00a0\+) (?=\d)", "\u00a0", joined)
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(joined))))


def build_context(
    summary: Summary, findings: Sequence[Finding], extra: Extra | None
) -> dict[str, Any]:
    """Return all variables of the template except the figures."""
    data, anchors = summary.data, links.run_anchors(summary)
    heads = links.find_heads(summary)
    return {
        "meta": data.meta,
        "when": extra.when
        if extra
        else f"Collected {tables.format_time(data.meta.collected_unix_s)} UTC",
        "answer": extra.answer if extra else describe_answer(summary),
        "sections": extra.sections if extra else [],
        "redo": extra.redo if extra else list_redo_commands(data.meta.study),
        "asked": tables.build_request_table(summary),
        "overhead_headings": tables.OVERHEAD_HEADINGS,
        "overheads": tables.build_overhead_groups(summary, anchors),
        "nodes": tables.build_node_table(summary),
        "tags": build_tag_table(summary),
        "programs": build_program_table(summary),
        "network": build_network_section(summary),
        "slopes": build_slope_table(summary),
        "compared_nodes": build_node_section(summary),
        "tolerance": build_tolerance_section(summary),
        "optima": describe_numeric_optima(find_numeric_optima(summary)),
        "scaling": build_scaling_section(summary),
        "split": build_split_section(summary),
        "variants": [
            build_variant_section(summary, variant, anchors) for variant in summary.variants
        ],
        "findings": [(one, link_finding_places(one, heads)) for one in findings],
        "gap_counts": tables.count_gaps(data),
        "gaps": tables.build_gap_table(data, MAX_GAPS),
        "gaps_left_out": max(len(data.gaps) - MAX_GAPS, 0),
        "facts": build_facts(summary),
    }


def link_finding_places(finding: Finding, heads: dict[str, str]) -> list[links.Place]:
    return list(links.link_places(finding.places[:MAX_PLACES], heads))


def list_redo_commands(study: str) -> list[str]:
    """Return the commands that repeat the study from its file."""
    name, at, session = study.partition("@")
    submitted = f"{name}.toml --session {session}" if at else f"{name}.toml"
    given = study if at else f"{name}.toml"
    return [
        f"steelyard submit {submitted}",
        f"steelyard status {given} --watch",
        f"steelyard collect {given}",
        f"steelyard report {given}",
    ]


def build_variant_section(summary: Summary, variant: str, anchors: links.Anchors) -> dict[str, Any]:
    """Return one variant's tables and runs."""
    rows_of_metrics = list(metric_rows(summary, variant))
    known = [rows for rows in rows_of_metrics if any(row.values for row in rows)]
    unknown = [rows[0].metric.name for rows in rows_of_metrics if rows not in known]
    every = [
        (
            rows[0],
            *tables.build_metric_table(rows, anchors),
            tables.describe_source(summary, rows[0]),
        )
        for rows in known
    ]
    return {
        "name": variant,
        "main": [entry for entry in every if is_main(entry[0])],
        "others": [entry for entry in every if not is_main(entry[0])],
        "unknown": unknown,
        "has_records": bool(summary.data.records),
        "inside": summary.data.repeated.get(variant, 1),
        "run_headings": tables.run_headings(summary, variant),
        "run_groups": list(tables.build_run_groups(summary, variant, anchors)),
    }


def select_figures(
    variant: dict[str, Any], figures: dict[str, list[RenderedFigure]]
) -> dict[str, Any]:
    """Return a variant's figures, and whether the figure over time is missing."""
    drawings = figures.get(variant["name"], [])
    has_time = any(drawing.name.startswith("time-") for drawing in drawings)
    return {
        "drawings": drawings,
        "no_time": bool(drawings) and variant["has_records"] and not has_time,
    }


@dataclass(frozen=True)
class Section:
    """A section of the page: sentences, tables with their captions, figures."""

    anchor: str
    title: str
    sentences: Sequence[str] = ()
    tables: Sequence[tuple[str, Table]] = ()
    draws: Sequence[Draw] = ()
    drawings: Sequence[RenderedFigure] = ()  # the rendered figures


@dataclass(frozen=True)
class Extra:
    """Additions to a report."""

    when: str  # replaces the time of collect
    answer: Sequence[str]
    sections: Sequence[Section]
    findings: Sequence[Finding]
    redo: Sequence[str]  # commands
