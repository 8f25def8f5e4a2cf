"""What is shown for a factor's levels: their names, or what differs."""

from __future__ import annotations

import pytest

from steelyard.analysis.base.level_names import format_levels


@pytest.mark.parametrize(
    ("factor", "levels", "shown"),
    [
        ("network", ["rate=20mbit,delay=25ms", "rate=20mbit,delay=50ms"], ["delay=25ms", "delay=50ms"]),
        ("network", ["none", "rate=20mbit,delay=50ms"], None),  # a rate is a difference from none
        ("network", ["rate=20mbit", "rate=20mbit,delay=50ms"], None),  # one would be empty
        ("launcher", ["unshare,cpus=2", "unshare,cpus=4"], ["cpus=2", "cpus=4"]),
        ("input", ["/data/a/1.root", "/data/b/1.root"], ["a/1.root", "b/1.root"]),
        ("directory", ["/lustre/scratch", "/nfs/scratch"], None),  # would look relative
        ("network", ["delay=1ms,to=10.0.0.0/8"], None),
        ("command", ["./a x,y", "./a x,z"], None),  # a text of its own, no list of conditions
        ("cached", [True, False], ["true", "false"]),
    ],
)  # fmt: skip
def test_unnamed_levels_are_shown_by_what_differs(
    factor: str, levels: list[object], shown: list[str] | None
) -> None:
    texts = format_levels({factor: levels}, "")[factor]
    assert list(texts.values()) == (shown or levels)


def test_named_levels_are_shown_by_their_names() -> None:
    toml = 'name = 1\n[factors]\nnetwork = { near = "delay=1ms", far = "delay=50ms" }\nn = { from = 1, to = 2 }\n'
    texts = format_levels({"network": ["delay=1ms", "delay=50ms"], "n": [1, 2]}, toml)
    assert texts["network"] == {"delay=1ms": "near", "delay=50ms": "far"}
    assert texts["n"] == {"1": "1", "2": "2"}
