"""What a job leaves: the records of its nodes, and what its scheduler reports of each start."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.analysis.sources.record_folders import job_folders

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Report:
    """One start of a job, as its scheduler reports it."""

    is_over: bool
    elapsed_s: float | None
    nodes: tuple[str, ...] = ()
    # Our totals in the accounting, by node; under None those of the whole job.
    totals: Mapping[Any, Record | None] | None = None
    extern_s: float | None = None  # its extern step's, which ends after the job; None: it has none
    is_final: bool = True  # nothing more is to come


def read_records(folders: Iterable[Path], job: str) -> list[Record]:
    """Of a job, as far as they can be seen from here."""
    found = []
    for folder in folders:
        for path in (p for at in job_folders(folder, job) for p in sorted(at.glob("*.json"))):
            try:
                found.append(json.loads(path.read_bytes()))
            except (OSError, ValueError):  # not complete yet, or not for us
                continue
    return [record for record in found if isinstance(record, dict)]


def split_documents(text: str) -> list[Record]:
    """JSON documents one after another, up to the first that is cut."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while (at := text.find("{", at)) >= 0:
        try:
            document, at = decoder.raw_decode(text, at)
        except ValueError:
            break
        found.append(document)
    return found
