"""What a report may have besides a study's own: sections and findings of published data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.analysis.findings.finding import Finding
from steelyard.analysis.report.figures import Draw, Shown
from steelyard.analysis.report.tables import Table


@dataclass(frozen=True)
class Section:
    """A part of the page: sentences, tables with their captions, figures."""

    anchor: str
    title: str
    sentences: Sequence[str] = ()
    tables: Sequence[tuple[str, Table]] = ()
    draws: Sequence[Draw] = ()
    drawings: Sequence[Shown] = ()  # what they drew


@dataclass(frozen=True)
class Extra:
    """Added to a report."""

    when: str  # in place of the time of collect
    answer: Sequence[str]
    sections: Sequence[Section]
    findings: Sequence[Finding]
    redo: Sequence[str]  # commands
