"""facts/fields: what a comparison of a document with its declaration finds, and who writes the fields."""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from steelyard.facts import json_fields

ROOT = Path(__file__).parents[3]
SOURCES = ("*.[ch]", "*.py", "*.sh", "*.def", "*.toml")
# Fields whose names are put together: tcp.snd_cwnd_median_segments, energy_scope.
BUILT_OF_PARTS = {
    *(f"snd_cwnd_{kind}_segments" for kind in ("median", "max")),
    *(f"rcv_space_{kind}_bytes" for kind in ("median", "max")),
    *(f"{part}_scope" for part in ("energy", "network")),
}
COLLECTED: dict[str, Any] = {
    "format": "steelyard-cluster",
    "version": 3,
    "database_id": "a",
    "cluster": None,
    "collected_unix_s": 1.5,
    "queried_until_unix_s": None,
    "jobs": 1,
    "running": 0,
    "revision": "b",
}
LINK: dict[str, Any] = {
    "requested": "delay=1ms",
    "spec": {"delay_s": 0.001, "to": ["10.0.0.1"]},
    "applied": None,
    "peer": None,
    "rtt": {
        "before": {
            "sent": 2, "received": 2, "min_s": 0.1, "median_s": 0.1, "mean_s": 0.1, "sd_s": None,
            "max_s": 0.1,
        },
        "during_start": None, "during_end": None, "after": None,
    },
    "counters": None,
    "loss": None,
    "delay_table": None,
    "verify_s": None,
    "valid": True,
    "invalid_reason": None,
    "missing": {},
    "to_site": "b",
}  # fmt: skip


def test_documents_as_declared_have_no_faults() -> None:
    assert json_fields.compare("collected", COLLECTED) == []
    assert json_fields.compare("site_link", LINK) == []


def remove_time(link: dict[str, Any]) -> None:
    del link["rtt"]["before"]["max_s"]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda link: link.pop("peer"), "peer is missing"),
        (lambda link: link.update(color="red"), "color is not declared"),
        (lambda link: link.update(valid=1), "valid is '1', not bool"),
        (lambda link: link.update(requested=None), "requested is 'None', not text"),
        (lambda link: link.update(notes="a note"), "notes is 'a note', not list of text or absent"),
        (lambda link: link.update(notes=["a", 1]), "notes is \"['a', 1]\", not list of text or absent"),
        (lambda link: link.update(missing={"a": 1}), "missing is \"{'a': 1}\", not object of text"),
        (remove_time, "rtt.before: echoes: max_s is missing"),
        (lambda link: link["rtt"].update(later=None), "rtt.later is not declared"),
    ],
)  # fmt: skip
def test_a_document_that_differs_is_found(
    change: Callable[[dict[str, Any]], object], fault: str
) -> None:
    link = copy.deepcopy(LINK)
    change(link)
    assert json_fields.compare("site_link", link) == [f"site_link: {fault}"]


def test_members_of_lists_are_compared() -> None:
    entry = {"state": "failed", "reason": "exit code 1"}
    for tries, count in (([], 0), ([entry], 0), ([entry, {"state": "failed"}], 1)):
        found = json_fields.compare("run_result", {"tries": tries})
        assert sum("tries[]." in fault for fault in found) == count


def alternatives(name: str) -> Iterator[str]:
    for expected in json_fields.read(name).types.values():
        yield from expected


@pytest.mark.parametrize("name", json_fields.names())
def test_types_and_documents_of_a_declaration_exist(name: str) -> None:
    for kind in alternatives(name):
        base = re.sub("^(list|object) of ", "", kind)
        if base.startswith("document "):
            assert base.removeprefix("document ") in json_fields.names()
        else:
            assert base.removesuffix("s") in {*json_fields.KINDS, "absent"}, kind


@pytest.mark.parametrize("name", json_fields.names())
def test_sources_write_each_declared_field(name: str) -> None:
    """Also those that only another machine's documents have."""
    declared = json_fields.read(name)
    text = "".join(source_text(ROOT / place) for place in declared.written_by)
    words = set(re.findall(r"[A-Za-z_]\w*", text))
    fields = {
        path.rpartition(".")[2].removesuffix("[]") for row in declared.rows for path in row.paths
    }
    assert fields - words - BUILT_OF_PARTS == set()


def source_text(place: Path) -> str:
    files = [place] if place.is_file() else [one for kind in SOURCES for one in place.rglob(kind)]
    assert files, f"{place} is missing"
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("jobscripts/*/benchmark.toml")), ids=lambda path: path.parent.name
)
def test_benchmarks_have_the_declared_keys(path: Path) -> None:
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    assert json_fields.compare("benchmark", table) == []
