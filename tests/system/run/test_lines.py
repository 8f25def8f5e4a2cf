"""Which commands the words of `steelyard run` mean, and which need a shell: checked with sh."""

from __future__ import annotations

import subprocess

import pytest

from steelyard.wrappers.run import run_plan

# Split by us, and by sh: must be the same words.
PLAIN = [
    "printf %s\\n a b",
    "printf '%s|' 'a  b' \"c d\" e\\ f",
    "printf '%s|' 'a|b' \"c;d\" e\\&f '$x' '`x`' \\$y",
    "printf '%s|' a=b {t} {a,b} a~b a#b !",
    "  printf   x  ",
    "printf '%s|' ''",
]


@pytest.mark.parametrize("text", PLAIN)
def test_a_line_without_shell_syntax_is_split_as_sh_splits_it(text: str) -> None:
    found = run_plan.parse_line(text, "sh")
    assert found.shell is None
    by_sh = subprocess.run(["sh", "-c", text], capture_output=True, check=True).stdout
    assert subprocess.run(found.argv, capture_output=True, check=True).stdout == by_sh


def test_a_program_with_a_blank_in_its_name_is_one(tmp_path: pytest.TempPathFactory) -> None:
    program = f"{tmp_path}/my app"
    subprocess.run(["cp", "/bin/true", program], check=True)
    assert not run_plan.has_command_lines([program])
    assert run_plan.has_command_lines([f"{program} x"])
