"""AdminComment is everybody's: what others wrote stays; ours is read in each of its shapes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steelyard.analysis.sources import admin_comment

ROOT = Path(__file__).resolve().parents[3]
OWN = '{"cpu_s":1}'
KEY = '"steelyard":{"cpu_s":1}}'


@pytest.mark.parametrize(
    ("present", "kept"),
    [
        (None, "{"),
        ("", "{"),
        (" \n", "{"),
        ("{}", "{"),
        ("{ }", "{"),
        ('{"a":1}', '{"a":1,'),
        ('{"a": 0.10, "b":[{"c":"},{\\""}]}\n', '{"a": 0.10,"b":[{"c":"},{\\""}],'),
        ('{"steelyard":{"cpu_s":9,"x":[1,2]}}', "{"),
        ('{"a":1,"steelyard":{"cpu_s":9},"b":2}', '{"a":1,"b":2,'),
        ('{"steelyards":3,"tags":{}}', '{"steelyards":3,"tags":{},'),
    ],
)
def test_ours_goes_beside_what_others_wrote(present: str | None, kept: str) -> None:
    once = admin_comment.merged(present, OWN)
    assert once == kept + KEY
    assert admin_comment.merged(once, OWN) == once
    json.loads(once)


@pytest.mark.parametrize(
    "present",
    ["JS1:H4sIAAAA", "x", "[1]", '{"a":1', '"{}"', '{"a":1}{}', '{"a":1,"a":2}', '{"a":NaN}'],
)
def test_what_is_no_object_is_left_alone(present: str) -> None:
    with pytest.raises(admin_comment.ForeignError, match="somebody else"):
        admin_comment.merged(present, OWN)


def test_slurm_would_cut_it() -> None:
    with pytest.raises(admin_comment.ForeignError, match="no room"):
        admin_comment.merged(json.dumps({"a": "x" * 65515}), OWN)


@pytest.mark.parametrize(
    "text", ["", "free text", "[1]", '{"other": 1}', '{"steelyard":1', "[" * 9999]
)
def test_nothing_of_ours(text: str) -> None:
    assert admin_comment.own(text) is None


def test_what_went_without_saying_is_there_again() -> None:
    text = (
        '{"site":7,"steelyard":{"node_type":"virtual","vm":"kvm","nodes":2,"elapsed_s":1.5,'
        '"exclusive":false,"missing":{"of the whole node":["rx_bytes","tx_bytes"]}}}'
    )
    own = admin_comment.own(text)
    assert own is not None and "site" not in own
    assert (own["vm"], own["container"], own["kernel"], own["tags"]) == ("kvm", "none", None, {})
    assert (own["nodes"], own["nodes_weighed"], own["elapsed_s"]) == (2, 2, 1.5)
    assert own["cpu_s"] is own["energy_j"] is None and own["exclusive"] is False
    assert own["missing"] == dict.fromkeys(("rx_bytes", "tx_bytes"), "of the whole node")


def test_what_a_job_has_at_its_start_tells_nothing_of_the_node() -> None:
    own = admin_comment.own('{"steelyard":{"tags":{"a":"b"},"nodes":1,"nodes_weighed":0}}')
    assert own is not None and (own["vm"], own["container"], own["nodes_weighed"]) == (
        None,
        None,
        0,
    )


def test_the_shape_of_pbs() -> None:
    text = '{"steelyard":1,"node_type":"virtual","cpu_s":0.5,"missing":{"energy_j":"no RAPL"}}'
    own = admin_comment.own(text)
    assert own is not None and (own["cpu_s"], own["missing"]) == (0.5, {"energy_j": "no RAPL"})


def test_what_the_pages_tell_to_say_shows_all_of_it() -> None:
    """sacct cuts a column at its width; ours has none."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    lines = [x for page in pages for x in page.read_text(encoding="utf-8").splitlines()]
    told = [
        x for x in lines if x.startswith(("$ ", "    ")) and "sacct" in x and "AdminComment" in x
    ]
    assert len(told) >= 3
    assert all(" -P " in line and "AdminComment%" not in line for line in told)
