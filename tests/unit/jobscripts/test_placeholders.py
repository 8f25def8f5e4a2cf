"""A factor's level in a command: bash itself says that it stays one argument, wherever it
stands."""

from __future__ import annotations

import pytest

from steelyard.jobscripts import parameters
from steelyard.jobscripts.placeholders import filled_command, unknown_names


@pytest.mark.parametrize("command", ["echo `cat {x}`", "echo $'a {x}'"])
def test_where_nothing_can_be_quoted_it_is_refused(command: str) -> None:
    with pytest.raises(ValueError, match="nothing can be quoted safely"):
        filled_command(command, {"x": "1"})


def test_other_braces_are_left_alone() -> None:
    command = "awk '{print $1}' ${x} {1..3} {a,b} {y}"
    assert filled_command(command, {"x": "1"}) == command


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("app --jobs={threads} {input}", ["threads", "input"]),
        ('app "{threads}" $(echo {threads})', ["threads"]),
        ("awk '{print}' f {x}", []),  # a program of awk's; x is a factor
        ("echo ${HOME} {1..3} {a,b} {}", []),
    ],
)
def test_names_that_no_factor_has(command: str, names: list[str]) -> None:
    assert unknown_names(command, ["x"]) == names


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"1A": "x"}, "a variable's name is letters"),
        ({"SY_CLIENT": "x"}, "Steelyard's own variables"),
        ({"STEELYARD_NODE": "x"}, "Steelyard's own variables"),
        ({"A": "x\ny"}, "a text of one line is needed"),
        ({"A": ["x"]}, "a text of one line is needed"),
        (["A=x"], "a table NAME"),
        ("{", "no JSON"),
    ],
)
def test_a_table_of_variables_is_checked(table: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parameters.canonical_environment(table)
