"""Which commands the words of `steelyard run` mean, and which need a shell: checked with sh."""

from __future__ import annotations

import shlex

import pytest

from steelyard.wrappers.base.errors import MissingError, UsageError
from steelyard.wrappers.run import run_plan

# sh does not take these as plain words.
SHELL = {
    "printf x | cat": "'|'",
    "printf x; printf y": "';'",
    "printf x >/dev/null": "'>'",
    "printf %s $HOME": "'$'",
    'printf %s "$HOME"': "'$'",
    'printf %s "`pwd`"': "'`'",
    'printf %s "\\$HOME"': "'\\$'",
    "printf %s ~": "'~'",
    "printf %s /et?": "'?'",
    "printf %s /et[c]": "'['",
    "printf %s x # y": "'#'",
    "printf x\nprintf y": "a second line",
    "X=1 printf y": "the assignment X=",
    "exit 3": "'exit' is the shell's own",
    "if true; then false; fi": "';'",
}


@pytest.mark.parametrize("text", SHELL)
def test_a_line_with_shell_syntax_goes_through_the_shell_and_says_why(text: str) -> None:
    found = run_plan.parse_line(text, "bash")
    assert (found.argv, found.shell) == (("bash", "-c", text), "bash")
    assert found.why_shell == SHELL[text] or found.why_shell == "the assignment X=1"
    with pytest.raises(UsageError, match="needs a shell"):
        run_plan.parse_line(text, run_plan.NONE)


@pytest.mark.parametrize(("text", "words"), [("a 'b", "no closing quotation"), (" ", "is empty")])
def test_lines_that_are_none(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        run_plan.parse_line(text, "sh")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["gzpi", "-k"], r"gzpi: no such program on this machine; did you mean 'gzip'\?"),
        (["cd", "/tmp"], "the shell's own; say sh -c 'cd /tmp'"),
        (["./none"], "^./none: no such program on this machine$"),
    ],
)
def test_no_such_program_has_a_hint(words: list[str], hint: str) -> None:
    with pytest.raises(MissingError, match=hint):
        run_plan.check_on_this_machine(run_plan.make_command(words))


def test_lists_make_the_product_in_order() -> None:
    values = run_plan.parse_lists(["a=1,2", "b=x\\,y,z"])
    assert [shlex.join(one.values()) for one in run_plan.list_combinations(values)] == [
        "1 x,y", "1 z", "2 x,y", "2 z",
    ]  # fmt: skip
    assert run_plan.fill_names("{a} {b} {c} {{a}}", {"a": "{b}", "b": "2"}) == "{b} 2 {c} {{b}}"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a"], "-L a: expected NAME=VALUE,VALUE"),
        (["1=2"], "-L 1=2: expected NAME=VALUE"),
        (["a=1", "a=2"], "-L a=2: a is given twice"),
        (["a=1,1"], "-L a=1,1: a value is there twice"),
    ],
)
def test_wrong_lists_are_one_line(texts: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run_plan.parse_lists(texts)


def test_a_list_that_no_command_uses_is_named() -> None:
    with pytest.raises(
        UsageError, match=r"no command has \{thread\} in it; did you mean 'threads'"
    ):
        run_plan.check_lists_used({"thread": ("1",)}, ["app {threads}"])
