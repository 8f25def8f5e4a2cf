"""Our comment is read in each of its forms, together with other text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from steelyard.analysis.sources import admin_comment

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    "text", ["", "free text", "[1]", '{"other": 1}', '{"steelyard":1', "[" * 9999]
)
def test_nothing_of_ours(text: str) -> None:
    assert admin_comment.read_own_comment(text) is None


def test_what_went_without_saying_is_there_again() -> None:
    text = (
        '{"site":7,"steelyard":{"node_type":"virtual","vm":"kvm","nodes":2,"elapsed_s":1.5,'
        '"exclusive":false,"missing":{"of the whole node":["rx_bytes","tx_bytes"]}}}'
    )
    own = admin_comment.read_own_comment(text)
    assert own is not None and "site" not in own
    assert (own["vm"], own["container"], own["kernel"], own["tags"]) == ("kvm", "none", None, {})
    assert (own["nodes"], own["nodes_measured"], own["elapsed_s"]) == (2, 2, 1.5)
    assert own["cpu_s"] is own["energy_j"] is None and own["exclusive"] is False
    assert own["missing"] == dict.fromkeys(("rx_bytes", "tx_bytes"), "of the whole node")


def test_a_sampler_that_did_not_answer_tells_nothing_of_the_node() -> None:
    own = admin_comment.read_own_comment(
        '{"steelyard":{"tags":{"a":"b"},"nodes":1,"nodes_measured":0}}'
    )
    assert own is not None and (own["vm"], own["container"], own["nodes_measured"]) == (
        None,
        None,
        0,
    )


@pytest.mark.parametrize(
    ("counts", "is_partial"),
    [
        ('"nodes":2', False),
        ('"nodes":2,"nodes_measured":1,"partial":true', True),
        ('"cpu_s":1', True),
    ],
)
def test_what_lacks_nodes_is_partial(counts: str, is_partial: bool) -> None:
    own = admin_comment.read_own_comment(f'{{"steelyard":{{{counts}}}}}')
    assert own is not None and admin_comment.is_partial(own) is is_partial


def test_the_shape_of_pbs() -> None:
    text = '{"steelyard":1,"node_type":"virtual","cpu_s":0.5,"missing":{"energy_j":"no RAPL"}}'
    own = admin_comment.read_own_comment(text)
    assert own is not None and (own["cpu_s"], own["missing"]) == (0.5, {"energy_j": "no RAPL"})


def test_what_the_pages_tell_to_say_shows_all_of_it() -> None:
    """sacct cuts a column at its width; ours has none."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    told = re.findall(r"sacct -[^`\n]*AdminComment\S*", text)
    assert len(told) >= 3
    assert all(" -P " in line and "AdminComment%" not in line for line in told)
