"""Write a study file from five answers: what to run, against what, how often, where, its name.

Asks on a terminal for what no option gives. The file is commented, and `submit --dry-run` takes it
as it is.

  steelyard new
  steelyard new --run './app -j {threads}' --against 'threads=1 2 4' --name app
  steelyard new --run npb --against 'node_type=physical virtual' --repeat 2%
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard.wrappers.study.template import Answers

Read = Callable[[str], Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `steelyard new`."""
    add = parser.add_argument
    add("--run", metavar="WHAT", help="a benchmark (`steelyard list`), or a command line")
    add(
        "--against",
        metavar="NAME=LEVELS",
        action="append",
        help="a factor and its levels, the baseline first: 'threads=1 2 4' (repeatable)",
    )
    add("--repeat", metavar="N", help="runs of each condition; or the difference to be seen: 2%%")
    add("--scheduler", metavar="NAME", help="slurm, pbs or local")
    add("--partition", metavar="NAME", help="of the scheduler")
    add("--name", metavar="NAME", help="of the study; the file is NAME.toml")
    add("--force", action="store_true", help="write over a file of that name")


def main(args: argparse.Namespace) -> int:
    """Read the answers, check them and write the file."""
    from steelyard.wrappers.base import errors
    from steelyard.wrappers.study import study, template

    require_answers(args)
    answers = read_answers(args)
    path = Path(f"{answers.name}.toml")
    content = template.render_toml(answers)
    study.parse_study(content.encode(), path)  # raises an error that says what is wrong
    if path.exists() and not args.force:
        raise errors.UsageError(f"{path} is there already: another --name, or --force", str(path))
    path.write_text(content, encoding="utf-8")
    option = template.scheduler_option(answers)
    print(f"{path} is written. Now:")
    print(f"  steelyard check {path}{option}              what it costs, what is missing")
    print(f"  steelyard submit {path}{option} --dry-run   what would be submitted")
    print(f"  steelyard submit {path}{option}")
    return errors.DONE


def require_answers(args: argparse.Namespace) -> None:
    """Raise UsageError if an option is missing and there is no terminal to ask on."""
    from steelyard.wrappers.base import errors

    lacking = [f"--{name}" for name in ("run", "name") if getattr(args, name) is None]
    if lacking and not sys.stdin.isatty():
        raise errors.UsageError(
            f"{' and '.join(lacking)} must be given where there is no terminal to ask: steelyard "
            "new --run 'COMMAND {threads}' --against 'threads=1 2 4' --repeat 10 --scheduler "
            "local --name NAME"
        )


def read_answers(args: argparse.Namespace) -> Answers:
    """Return the five answers: from options, else from the terminal, else defaults."""
    from steelyard.wrappers.schedulers import registry
    from steelyard.wrappers.study import template

    run = read_answer(
        args.run, "What is to be run? A benchmark or a command line", None, parse_text
    )
    against = [template.read_against(text) for text in args.against or prompt_for_factors(args)]
    repeat, difference = read_answer(
        args.repeat, "How many repeats, or which difference should be seen?", "10",
        template.read_repeat,
    )  # fmt: skip
    where = read_answer(
        args.scheduler, "Where? slurm, pbs or local", registry.detect_scheduler(), parse_scheduler
    )
    partition = args.partition
    if (
        partition is None
        and args.scheduler is None
        and not registry.find_class(where).runs_here
        and sys.stdin.isatty()
    ):
        partition = prompt("In which partition? (empty: the default)", "", str) or None
    name = read_answer(args.name, "What is the study's name?", "study", template.read_name)
    return template.Answers(run, dict(against), repeat, difference, where, partition, name)


def prompt_for_factors(args: argparse.Namespace) -> list[str]:
    """Ask for factors until an answer is empty."""
    from steelyard.wrappers.base.errors import UsageError
    from steelyard.wrappers.study import template

    if not sys.stdin.isatty():
        return []
    print("Against what? NAME=LEVELS, the baseline first, such as node_type=physical virtual,")
    print("network=none delay=20ms, launcher=bare podman:debian:12, or your own: threads=1 2 4")
    found: list[str] = []
    while line := prompt("  factor (empty: no more)", "", lambda text: text):
        try:
            template.read_against(line)
        except UsageError as error:
            print(f"  {error}")
            continue
        found.append(line)
    return found


def read_answer(given: str | None, question: str, usual: str | None, read: Read) -> Any:
    """Return an option's value, else the answer on a terminal, else the default."""
    if given is not None:
        return read(given)
    if not sys.stdin.isatty() and usual is not None:
        return read(usual)
    return prompt(question, usual, read)


def prompt(question: str, usual: str | None, read: Read) -> Any:
    """Ask on a terminal until the answer can be parsed."""
    from steelyard.wrappers.base.errors import UsageError

    while True:
        line = input(f"{question}{f' [{usual}]' if usual else ''}: ").strip() or usual
        try:
            return read(line or "")
        except UsageError as error:
            print(f"  {error}")


def parse_text(text: str) -> str:
    """Return a line of text. Raises UsageError if it is empty."""
    from steelyard.wrappers.base.errors import UsageError

    if not text.strip() or not text.isprintable():
        raise UsageError("expected a benchmark's name or a command, in one line")
    return text.strip()


def parse_scheduler(text: str) -> str:
    """Return the name of an existing scheduler. Raises UsageError for another name."""
    from steelyard.wrappers.schedulers import registry

    return registry.find_class(text).name
