"""A factor's level in a command: bash itself shows that it remains one argument at any position."""

from __future__ import annotations

import json
import subprocess

import pytest

from steelyard.jobscripts import parameters, registry
from steelyard.jobscripts.placeholders import fill, filled_command

NASTY = ("a b", "it's", '"q"', "$HOME", "`id`", "a\\b", "*", "", "-n", "a;b", "!x", "ü", "$(id)")
# QQ marks the position of the level.
COMMANDS = {
    "bare": "printf '<%s>' {x}",
    "in double quotes": 'printf "<%s>" "pre{x}post"',
    "in single quotes": "printf '<%s>' 'pre{x}post'",
    "in a substitution in quotes": 'printf "<%s>" "$(printf %s {x})"',
    "in quotes in a substitution in quotes": 'printf "<%s>" "$(printf %s "{x}")"',
    "behind an option": "printf '<%s>' --in={x}",
    "behind escaped quotes": 'printf "<%s>" "a\\"{x}"',
    "behind an escaped apostrophe": "printf '<%s>' it\\'s{x}",
    "behind arithmetic": "printf '<%s>' $((1+2)){x}",
    "beside parentheses in quotes": 'printf "<%s>" "$((1+2)) ( {x} )"',
    "in a subshell": "(printf '<%s>' {x})",
    "behind what bash means by braces": "printf '<%s>' ${x-} {1..3} $'a\\'b'{x}",
}


def said(command: str) -> str:
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_level_arrives_as_one_argument_whatever_is_in_it(command: str) -> None:
    expected = said(command.replace("${x-}", "${y-}").replace("{x}", "QQ"))
    assert "QQ" in expected
    for level in NASTY:
        assert said(filled_command(command, {"x": level})) == expected.replace("QQ", level)


def test_variables_take_levels_as_they_are() -> None:
    parameter = registry.load("app").parameters["env"]
    given = parameter.check({"OMP_NUM_THREADS": "{x}", "N": 3, "ON": True})
    filled = fill(parameter, given, {"x": "a b'c"})
    assert json.loads(str(filled)) == {"OMP_NUM_THREADS": "a b'c", "N": "3", "ON": "true"}
    assert parameter.check(filled) == filled
    line = parameters.environment_words(str(filled))
    assert said(f'a=({line}); printf "%s|" "${{a[@]}}"') == "N=3|OMP_NUM_THREADS=a b'c|ON=true|"
