"""The plan of a `steelyard run`, read from its options: commands, hooks, and how often they run.

A command is a program with its arguments, or a quoted command line. A line is split as a shell
splits it. It runs in a shell only if its syntax needs one, because the shell's own time would be in
every figure."""

from __future__ import annotations

import argparse
import itertools
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from steelyard.analysis.stats.basics import CONFIDENCE
from steelyard.analysis.stats.number_format import parse_percent
from steelyard.analysis.stats.planning import STOPPING_CONFIDENCE
from steelyard.wrappers.base.errors import MissingError, UsageError, did_you_mean
from steelyard.wrappers.base.programs import SHELL_ASSIGNMENT, SHELL_BUILT_IN, SHELL_SYNTAX

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
    if SHELL_ASSIGNMENT.match(word):
        return f"the assignment {word}"
    if word in SHELL_BUILT_IN and shutil.which(word) is None:
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
        elif char in SHELL_SYNTAX or (word_start and char in AT_WORD_START):
            return "a second line" if char == "\n" else f"'{char}'"
        word_start = char.isspace() and not quote
        position += 1
    return None


def check_on_this_machine(command: Command) -> None:
    """Raise MissingError, with a hint, if this machine has no such program."""
    name = command.argv[0]
    if shutil.which(name) is not None:
        return
    if name in SHELL_BUILT_IN:
        hint = f": it is the shell's own; say sh -c {shlex.quote(command.text)}"
    elif any(char in name for char in SHELL_SYNTAX + " "):
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


REPEAT_OF_SEVERAL = 10
HOOKS = ("setup", "prepare", "conclude", "cleanup")
BLOCKS = "blocks"


@dataclass(frozen=True)
class Hooks:
    """Command lines around the runs of one command, for sh. None means no hook."""

    setup: str | None = None  # once, before its first run
    prepare: str | None = None  # before every run, warm-ups too
    conclude: str | None = None  # after every run
    cleanup: str | None = None  # once, after its last run


@dataclass(frozen=True)
class Plan:
    """How often and in which order commands run, and when they have run enough."""

    repeat: int = 1  # runs of each command; with `until` the minimum
    warm_up: int = 0  # of each command, before the first run that counts
    until: float | None = None  # half width of elapsed's interval, as a share of its mean
    max_repeat: int = 1000
    max_time_s: float = 600.0  # no run starts later; only with `until`
    interleaved: bool = True
    continue_on_failure: bool = False  # after a failed run
    pass_code: bool = True  # return the failed command's exit code

    @property
    def confidence(self) -> float:
        """The confidence of the intervals; a stopping rule needs a higher one to cover 95 %."""
        return CONFIDENCE if self.until is None else STOPPING_CONFIDENCE

    @property
    def is_one_run(self) -> bool:
        """Whether each command runs exactly once."""
        return self.repeat == 1 and self.until is None and not self.warm_up


Made = list[tuple[int, Command]]  # each command with the index of the text that it was made from


def read_commands(words: Sequence[str], args: argparse.Namespace) -> Made:
    """Return the benchmark's script, or every command, of `words` or of -c, with every combination
    of -L."""
    if args.benchmark is not None:
        return [(0, Command(f"benchmark {args.benchmark}", ()))]
    values, given = parse_lists(args.list), args.command_line
    if given and words:
        raise UsageError("give commands by -c, or after the options, and not both", part=words[0])
    as_lines = list(given) or (list(words) if has_command_lines(words) else [])
    check_lists_used(values, as_lines or words)
    found = []
    for filled in list_combinations(values):
        if as_lines:
            made = [parse_line(fill_names(text, filled), args.shell) for text in as_lines]
        else:
            made = [make_command([fill_names(word, filled) for word in words])]
        found += [(index, replace(one, parameters=filled)) for index, one in enumerate(made)]
    if len(found) > MOST_COMMANDS:
        raise UsageError(f"-L: {len(found)} commands are more than {MOST_COMMANDS}")
    if not as_lines and are_programs(words):
        several = " ".join(f"-c {word}" for word in words)
        print(
            f"steelyard run: one command, '{words[0]}' with arguments; to compare them: {several}",
            file=sys.stderr,
        )
    return sorted(found, key=lambda one: one[0])


def read_hooks(args: argparse.Namespace, made: Made) -> list[Hooks]:
    """Return the hooks of every command. An option given once applies to all commands; else it is
    given once for each."""
    count = len({number for number, _ in made})
    for name in HOOKS:
        given = len(getattr(args, name))
        if given not in (0, 1, count):
            raise UsageError(
                f"--{name}: give it once, for all commands, or once for each of the {count}; "
                f"found {given}",
                part=name,
            )
    return [
        Hooks(**{name: read_hook(getattr(args, name), number, command) for name in HOOKS})
        for number, command in made
    ]


def read_hook(given: Sequence[str], number: int, command: Command) -> str | None:
    """Return a command's hook with the command's own parameters filled in, or None."""
    if not given:
        return None
    return fill_names(given[number if len(given) > 1 else 0], command.parameters)


def read_plan(args: argparse.Namespace, made: Made) -> Plan:
    """Return how often, in which order and until when the commands run."""
    count = len(made)
    until = None if args.until is None else read_share(args.until)
    for name in ("max_repeat", "max_time"):
        if until is None and getattr(args, name) is not None:
            raise UsageError(f"--{name.replace('_', '-')}: goes with --until", part=name)
    if args.setup and count > 1 and args.order == "rounds":
        raise UsageError("--setup of several commands: goes with --order=blocks", part="--setup")
    return Plan(
        repeat=args.repeat or (REPEAT_OF_SEVERAL if count > 1 else 1),
        warm_up=args.warmup,
        until=until,
        max_repeat=args.max_repeat or Plan.max_repeat,
        max_time_s=args.max_time or Plan.max_time_s,
        # The set-up of one command may rebuild what that of another built, so they cannot
        # alternate.
        interleaved=count == 1 or args.order != BLOCKS and not args.setup,
        continue_on_failure=args.ignore_failure,
        pass_code=args.benchmark is None,
    )


def read_share(text: str) -> float:
    """Return 0.02 for `2%`. Raises UsageError for another text."""
    found = parse_percent(text)
    if found is None:
        raise UsageError(
            f"--until {text}: expected a share of the mean, such as 2%: elapsed's interval is then "
            "at most 2 % to each side",
            part=text,
        )
    return found


NAME = re.compile(r"[A-Za-z_]\w*")
COMMA = re.compile(r"(?<!\\),")
MOST_COMMANDS = 1000


def parse_lists(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the values of each name; `\\,` is a comma in a value. Raises UsageError for a
    malformed list."""
    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not (equals and NAME.fullmatch(name)):
            raise UsageError(f"-L {text}: expected NAME=VALUE,VALUE,…, as in threads=1,2,4", text)
        if name in found:
            raise UsageError(f"-L {text}: {name} is given twice", text)
        found[name] = tuple(value.replace("\\,", ",") for value in COMMA.split(values))
        if len(set(found[name])) < len(found[name]):
            raise UsageError(f"-L {text}: a value is there twice", text)
    return found


def list_combinations(lists: Mapping[str, Sequence[str]]) -> Iterator[dict[str, str]]:
    """Yield the product of the lists, the last name varying fastest; without lists, one empty
    combination."""
    for values in itertools.product(*lists.values()):
        yield dict(zip(lists, values, strict=True))


def fill_names(text: str, values: Mapping[str, str]) -> str:
    """Replace each known {NAME}; all other braces belong to the command."""
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), text)


def check_lists_used(lists: Mapping[str, Sequence[str]], texts: Sequence[str]) -> None:
    """Raise UsageError for a list that no command uses."""
    there = {name for text in texts for name in re.findall(r"\{(\w+)\}", text)}
    for name in lists:
        if name not in there:
            hint = did_you_mean(name, there)
            raise UsageError(f"-L {name}=…: no command has {{{name}}} in it{hint}", part=name)
