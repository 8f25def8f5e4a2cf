"""facts/netem_keys.def: what each row says holds in the program, the policy, the words, the pages."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from steelyard.facts import netem_keys
from steelyard.facts.netem_keys import VALUES, Value

ROOT = Path(__file__).parents[3]
NODE = ROOT / "build" / "bin" / "steelyard-node"
BOUNDED = [value for value in VALUES if value.bound in ("MOST", "LEAST")]


def netem(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(NODE), "netem", *arguments], capture_output=True, text=True, timeout=30, check=False
    )


def in_units(value: Value, number: int) -> str:
    """As the policy's file writes it."""
    if value.kind == "PERCENT":
        return f"{number / 1e7:g}%"
    sizes = {"TIME": (("s", 10**6), ("ms", 1000), ("us", 1)), "WHOLE_MS": (("ms", 1000),),
             "RATE": (("mbit", 10**6), ("bit", 1)), "COUNT": (("", 1),)}[value.kind]  # fmt: skip
    unit, size = next((unit, size) for unit, size in sizes if number % size == 0)
    return f"{number // size}{unit}"


@pytest.mark.parametrize("value", BOUNDED, ids=lambda value: value.id)
def test_the_policys_bound_is_the_rows_and_stands_in_example_and_page(value: Value) -> None:
    default = in_units(value, int(value.default))
    example = (ROOT / "plugins/node/netem/netem.conf.example").read_text("utf-8")
    assert re.search(rf"^#{value.policy} {default}( |$)", example, re.MULTILINE)
    assert f"`{value.policy}`" in (ROOT / "docs/netem.md").read_text("utf-8")


def test_a_row_that_lacks_a_column_is_named() -> None:
    with pytest.raises(ValueError, match=r"netem_keys.def: KEY\(delay, …: 2 columns"):
        list(netem_keys.read('KEY(delay, "delay")\n'))
