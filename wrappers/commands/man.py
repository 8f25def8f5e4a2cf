"""`make docs`: a page of section 1 for `steelyard` and for each of its commands, from their help."""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
import textwrap
from pathlib import Path

from steelyard.wrappers.commands import cli, parsers


def main() -> int:
    """python -m steelyard.wrappers.commands.man FOLDER"""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "steelyard.1", top(), cli.QUESTION)
    for name, text in cli.COMMANDS.items():
        write(folder / f"steelyard-{name}.1", parsers.of(name, text), text)
    return 0


def top() -> argparse.ArgumentParser:
    """The page that leads to the others."""
    rows = "\n".join(f"{f'steelyard-{one}(1)':<25}{text}" for one, text in cli.COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="steelyard",
        usage="steelyard COMMAND [OPTIONS]",
        description=f"{cli.QUESTION}\n\n{rows}",
        epilog=cli.EXIT_CODES,
        formatter_class=parsers.Formatter,
    )
    parser.add_argument("-V", "--version", action="store_true", help="print the version")
    return parser


def write(path: Path, parser: argparse.ArgumentParser, text: str) -> None:
    """One page."""
    from argparse_manpage.manpage import Manpage

    version = importlib.metadata.version("steelyard")
    usage, _, _ = parser.format_help().removeprefix("usage: ").partition("\n\n")
    examples, parser.epilog = parser.epilog, None
    prose, parser.description = parser.description or text, None
    data = {"project_name": "steelyard", "version": version, "manual_title": "Steelyard"}
    page = Manpage(parser, _data=data | {"description": text})
    page.prog = path.stem
    page.add_section("synopsis", "=", as_is(textwrap.dedent(f"       {usage}")))
    page.add_section("description", "=", "\n.PP\n".join(map(paragraph, parsers.paragraphs(prose))))
    if examples is not None:
        title, _, lines = examples.partition(":")
        page.add_section(title, "=", as_is(textwrap.dedent(lines.strip("\n")).strip()))
    path.write_text(str(page), encoding="utf-8")


def paragraph(text: str) -> str:
    """Filled by man(1), or as it is laid out."""
    return as_is(text) if parsers.LAID_OUT.search(text) else escaped(text)


def as_is(text: str) -> str:
    """Lines that man(1) must not join."""
    return f".nf\n{escaped(text)}\n.fi"


def escaped(text: str) -> str:
    """What troff would read as its own."""
    return text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")


if __name__ == "__main__":
    sys.exit(main())
