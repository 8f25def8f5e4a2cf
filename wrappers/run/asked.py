"""Words of the command line -> commands, what is done around them, and how often."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace

from steelyard.analysis.base.percent import share_of
from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.run import line, lists
from steelyard.wrappers.run.line import Command
from steelyard.wrappers.run.session import Hooks, Plan

REPEAT_OF_SEVERAL = 10
HOOKS = ("setup", "prepare", "conclude", "cleanup")
BLOCKS = "blocks"


Made = list[tuple[int, Command]]  # with the number of what it was made from


def of_benchmark(name: str) -> Made:
    """Its script is the command."""
    return [(0, Command(f"benchmark {name}", ()))]


def commands(words: Sequence[str], args: argparse.Namespace) -> Made:
    """Every command, of `words` or of -c, with every combination of -L."""
    values, given = lists.parse(args.list), args.command_line
    if given and words:
        raise UsageError("give commands by -c, or after the options, and not both", part=words[0])
    as_lines = list(given) or (list(words) if line.are_lines(words) else [])
    lists.check_used(values, as_lines or words)
    found = []
    for filled in lists.combinations(values):
        if as_lines:
            made = [line.from_line(lists.fill(text, filled), args.shell) for text in as_lines]
        else:
            made = [line.from_words([lists.fill(word, filled) for word in words])]
        found += [(place, replace(one, parameters=filled)) for place, one in enumerate(made)]
    if len(found) > lists.MOST_COMMANDS:
        raise UsageError(f"-L: {len(found)} commands are more than {lists.MOST_COMMANDS}")
    if not as_lines and line.are_programs(words):
        several = " ".join(f"-c {word}" for word in words)
        print(
            f"steelyard run: one command, '{words[0]}' with arguments; to compare them: {several}",
            file=sys.stderr,
        )
    return sorted(found, key=lambda one: one[0])


def hooks(args: argparse.Namespace, made: Made) -> list[Hooks]:
    """Of every command: an option that is given once is for all, else there is one for each."""
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
        Hooks(**{name: one_hook(getattr(args, name), number, command) for name in HOOKS})
        for number, command in made
    ]


def one_hook(given: Sequence[str], number: int, command: Command) -> str | None:
    """With the command's own parameters."""
    if not given:
        return None
    return lists.fill(given[number if len(given) > 1 else 0], command.parameters)


def plan(args: argparse.Namespace, made: Made) -> Plan:
    """How often they are run."""
    count = len(made)
    until = None if args.until is None else share(args.until)
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
        # What one command's set-up built, the next one's may build anew.
        interleaved=count == 1 or args.order != BLOCKS and not args.setup,
        go_on=args.ignore_failure,
        pass_code=args.benchmark is None,
    )


def share(text: str) -> float:
    """0.02 of `2%`."""
    found = share_of(text)
    if found is None:
        raise UsageError(
            f"--until {text}: expected a share of the mean, such as 2%: elapsed's interval is then "
            "at most 2 % to each side",
            part=text,
        )
    return found
