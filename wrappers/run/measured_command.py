"""Parses the commands to measure: a program with its arguments, or quoted command lines.

A line is split as a shell splits it. It runs in a shell only if its syntax needs one, because the
shell's own time would be in every figure."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from steelyard.wrappers.base.errors import MissingError, UsageError, did_you_mean
from steelyard.wrappers.base.shell_only_syntax import ASSIGNMENT, BUILT_IN, SYNTAX

NONE = "none"
IN_DOUBLE_QUOTES = "$`"
AT_WORD_START = "~#"


@dataclass(frozen=True)
class Command:
    """One command to measure; `shell` is the shell that executes it, `why_shell` the reason for
    one."""

    text: str
    argv: tuple[str, ...]
    shell: str | None = None
    why_shell: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)  # of -L


def has_command_lines(words: Sequence[str]) -> bool:
    """Return whether the first word is a quoted command line; then all other words are, too."""
    return len(words[0].split()) > 1 and shutil.which(words[0]) is None


def make_command(words: Sequence[str]) -> Command:
    """Return a command of a program and its arguments."""
    return Command(shlex.join(words), tuple(words))


def parse_line(text: str, shell: str) -> Command:
    """Parse a command line. Raises UsageError for an open quote, an empty line, or a shell that is
    ruled out."""
    why = find_shell_syntax(text)
    try:
        argv = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{text}: {str(error).lower()}", part=text) from error
    if not argv:
        raise UsageError("a command line is empty", part=text)
    why = why or explain_first_word(argv[0])
    if why is None:
        return Command(text, tuple(argv))
    if shell == NONE:
        raise UsageError(f"{text}: needs a shell ({why}), which --shell=none rules out", part=text)
    return Command(text, (shell, "-c", text), shell, why)


def explain_first_word(word: str) -> str | None:
    """Return why a word cannot be the name of a program, or None."""
    if ASSIGNMENT.match(word):
        return f"the assignment {word}"
    if word in BUILT_IN and shutil.which(word) is None:
        return f"'{word}' is the shell's own"
    return None


def find_shell_syntax(text: str) -> str | None:
    """Describe the first character sequence that needs a shell; None if there is none."""
    quote, word_start, position = "", True, 0
    while position < len(text):
        char = text[position]
        if char == "\\" and quote != "'":
            position += 1
            if quote and text[position : position + 1] in (*IN_DOUBLE_QUOTES, "\n"):
                return f"'{text[position - 1 : position + 1]}'"  # shlex does not change these
        elif quote:
            if quote == '"' and char in IN_DOUBLE_QUOTES:
                return f"'{char}'"
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in SYNTAX or (word_start and char in AT_WORD_START):
            return "a second line" if char == "\n" else f"'{char}'"
        word_start = char.isspace() and not quote
        position += 1
    return None


def check_on_this_machine(command: Command) -> None:
    """Raise MissingError, with a hint, if this machine has no such program."""
    name = command.argv[0]
    if shutil.which(name) is not None:
        return
    if name in BUILT_IN:
        hint = f": it is the shell's own; say sh -c {shlex.quote(command.text)}"
    elif any(char in name for char in SYNTAX + " "):
        hint = f": a command line is one word in quotes: steelyard run {shlex.quote(command.text)}"
    elif Path(name).is_file():
        hint = f", which may be executed: chmod +x {shlex.quote(name)}"
    else:
        hint = "" if "/" in name else did_you_mean(name, list_programs())
    raise MissingError(f"{name}: no such program on this machine{hint}")


def list_programs() -> set[str]:
    """Return the names of all programs in PATH."""
    folders = [Path(folder) for folder in os.get_exec_path() if Path(folder).is_dir()]
    return {
        entry.name for folder in folders if os.access(folder, os.R_OK) for entry in folder.iterdir()
    }


def are_programs(words: Sequence[str]) -> bool:
    """Return whether all words are programs of this machine; the user probably meant several
    commands."""
    return len(words) > 1 and all(shutil.which(word) for word in words)
