"""Defines a paper: read_paper() reads its folder, the rest is Python of the paper's own module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steelyard.analysis.papers.claim_files import (
    Claim,
    Contradiction,
    Facts,
    PrintedValue,
    read_claims,
    read_contradictions,
)
from steelyard.analysis.papers.conditions import Studies
from steelyard.analysis.papers.printed_comparisons import PrintedComparison
from steelyard.analysis.papers.verdicts import Kind
from steelyard.analysis.report.figures import Draw


@dataclass(frozen=True)
class Paper:
    """A paper with all its data."""

    name: str
    title: str
    short: str
    claims: Sequence[Claim]
    contradictions: Sequence[Contradiction]
    values: Sequence[PrintedValue]  # of its tables
    draws: Callable[[Studies, Sequence[PrintedComparison]], Iterator[Draw]]  # figures like its own
    kinds: Mapping[str, Kind]  # kinds of claims that no other paper has

    @property
    def metrics(self) -> set[str]:
        """All metrics that claims and printed numbers need."""
        of_claims = {name for claim in self.claims for name in claim.metrics}
        return of_claims | {value.metric for value in self.values}


def read_paper(
    folder: Path,
    title: str,
    short: str,
    draws: Callable[[Studies, Sequence[PrintedComparison]], Iterator[Draw]],
    *,
    scopes: Mapping[str, Facts] | None = None,
    values: Sequence[PrintedValue] = (),
    kinds: Mapping[str, Kind] | None = None,
) -> Paper:
    """Read the paper in a folder; `scopes` are facts that its claims.csv names."""
    claims = read_claims(folder, scopes or {})
    contradictions = read_contradictions(folder)
    return Paper(folder.name, title, short, claims, contradictions, values, draws, kinds or {})
