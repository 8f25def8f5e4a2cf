"""Builds the report's tables of tags and programs, and the facts needed to repeat the study."""

from __future__ import annotations

import importlib.metadata
import platform

from steelyard.analysis.report import tables
from steelyard.analysis.report.tables import Table, join_names
from steelyard.analysis.stats.number_format import MISSING
from steelyard.analysis.store.database import SCHEMA_VERSION
from steelyard.analysis.summary.summary import Summary
from steelyard.analysis.summary.tags_and_programs import TagValue

MAX_VALUES = 6  # of one tag; a tag with more values is a measurement and no condition
MAX_PROGRAMS = 200
PACKAGES = ("duckdb", "numpy", "scipy", "matplotlib")  # used for the numbers and figures


def build_tag_table(summary: Summary) -> Table | None:
    """Return a table with a row per tag and value; None without tags."""
    by_key: dict[str, list[TagValue]] = {}
    for tag in summary.data.tags:
        by_key.setdefault(tag.key, []).append(tag)
    rows = [row for key, values in by_key.items() for row in build_tag_rows(key, values)]
    return Table(("Tag", "Value", "Nodes", "Runs"), rows) if rows else None


def build_tag_rows(key: str, values: list[TagValue]) -> list[tuple[str, ...]]:
    """Return the rows of one tag; of many values only the two in the most runs."""
    if len(values) > MAX_VALUES:
        ranked = sorted(values, key=lambda tag: -tag.runs)[:2]
        examples = ", ".join(tag.value for tag in ranked)
        nodes = sorted({node for tag in values for node in tag.nodes})
        runs = str(sum(tag.runs for tag in values))
        return [(key, f"{len(values)} values, such as {examples}", join_names(nodes), runs)]
    return [(key, tag.value, join_names(tag.nodes), str(tag.runs)) for tag in values]


def build_program_table(summary: Summary) -> Table | None:
    """Return programs and libraries with their checksums; None if no run recorded any."""
    rows = [
        (program.path, program.kind, program.sha256, join_names(program.nodes), str(program.runs))
        for program in summary.data.programs
    ]
    headings = ("Path", "Kind", "SHA-256", "Nodes", "Runs")
    return Table(headings, rows[:MAX_PROGRAMS]) if rows else None


def build_facts(summary: Summary) -> list[tuple[str, str]]:
    """Return what is needed to reproduce the numbers."""
    meta = summary.data.meta
    packages = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    return [
        ("Study", meta.study),
        (
            "Collected by",
            f"steelyard {meta.steelyard}, {tables.format_time(meta.collected_unix_s)} UTC",
        ),
        ("Reported by", f"steelyard {importlib.metadata.version('steelyard')}"),
        ("… with", f"Python {platform.python_version()}, {packages}"),
        ("Schema of the database", f"version {SCHEMA_VERSION}"),
        ("Seed of the order of runs", str(meta.seed) if meta.seed is not None else MISSING),
        ("SHA-256 of study.toml", meta.toml_sha256 or MISSING),
        ("SHA-256 of the measurements", tables.compute_data_sha256(summary.data)),
    ]
