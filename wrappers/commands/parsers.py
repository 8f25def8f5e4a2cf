"""The argument parsers: of one command, and of all, for completion and man pages.

What a command's module says is filled to the terminal's width, at most 80 columns; a paragraph
that is laid out (indented, or in columns) stays as it is.
"""

from __future__ import annotations

import argparse
import importlib
import re
import textwrap
from collections.abc import Mapping

from steelyard.wrappers.commands.help_examples import EXAMPLES

WIDTH = 78  # argparse leaves two columns of 80 free
LAID_OUT = re.compile(r"^\s|\S  ", re.MULTILINE)
# Commands whose name alone does not say what their module does.
MODULES = {"join-host": "guest_job_with_host_record", "metrics": "prometheus_metrics"}


class Formatter(argparse.RawDescriptionHelpFormatter):
    """A formatter that fills prose, but neither lists nor examples."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=24)
        self._width = min(self._width, WIDTH)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(
            paragraph if LAID_OUT.search(paragraph) else textwrap.fill(paragraph, width)
            for paragraph in split_paragraphs(text)
        )


def split_paragraphs(text: str) -> list[str]:
    """Return the paragraphs between empty lines."""
    return re.split(r"\n\s*\n", text.strip("\n"))


def make_parser(name: str, text: str) -> argparse.ArgumentParser:
    """Return the parser of one command; `text` is its line of help, used if its module has no
    docstring."""
    parser = argparse.ArgumentParser(prog=f"steelyard {name}", formatter_class=Formatter)
    fill_parser(parser, name, text)
    return parser


def find_module(name: str) -> str:
    """Return the name of a command's module."""
    return f"steelyard.wrappers.commands.{MODULES.get(name, name)}"


def fill_parser(parser: argparse.ArgumentParser, name: str, text: str) -> None:
    """Add the options, description and examples of a command's module."""
    module = importlib.import_module(find_module(name))
    description = getattr(module, "__doc__", None) or text
    parser.description = description
    if f"  steelyard {name}" not in description and name in EXAMPLES:
        lines = textwrap.indent(EXAMPLES[name], "  ")
        parser.epilog = f"examples:\n{lines}"
    module.add_arguments(parser)


def make_main_parser(commands: Mapping[str, str], description: str) -> argparse.ArgumentParser:
    """Return the parser of `steelyard` with all its commands."""
    parser = argparse.ArgumentParser(
        prog="steelyard", description=description, formatter_class=Formatter
    )
    parser.add_argument("-V", "--version", action="store_true", help="print the version")
    verbs = parser.add_subparsers(metavar="COMMAND", title="commands")
    for name, text in commands.items():
        fill_parser(verbs.add_parser(name, help=text, formatter_class=Formatter), name, text)
    return parser
