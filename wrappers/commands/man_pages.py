"""`make docs`: a page of section 1 for `steelyard` and for each of its commands, from their
help."""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
import textwrap
from pathlib import Path

from steelyard.wrappers.commands import cli, parsers


def main() -> int:
    """Write the pages: python -m steelyard.wrappers.commands.man_pages FOLDER"""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    write_page(folder / "steelyard.1", write_main_page(), cli.QUESTION)
    for name, text in cli.COMMANDS.items():
        write_page(folder / f"steelyard-{name}.1", parsers.make_parser(name, text), text)
    return 0


def write_main_page() -> argparse.ArgumentParser:
    """Return the parser of the main page, which refers to the others."""
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


def write_page(path: Path, parser: argparse.ArgumentParser, text: str) -> None:
    """Write one page."""
    from argparse_manpage.manpage import Manpage

    version = importlib.metadata.version("steelyard")
    usage, _, _ = parser.format_help().removeprefix("usage: ").partition("\n\n")
    examples, parser.epilog = parser.epilog, None
    prose, parser.description = parser.description or text, None
    data = {"project_name": "steelyard", "version": version, "manual_title": "Steelyard"}
    page = Manpage(parser, _data=data | {"description": text})
    page.prog = path.stem
    page.add_section("synopsis", "=", format_literal(textwrap.dedent(f"       {usage}")))
    page.add_section(
        "description", "=", "\n.PP\n".join(map(format_paragraph, parsers.split_paragraphs(prose)))
    )
    if examples is not None:
        title, _, lines = examples.partition(":")
        page.add_section(title, "=", format_literal(textwrap.dedent(lines.strip("\n")).strip()))
    path.write_text(str(page), encoding="utf-8")


def format_paragraph(text: str) -> str:
    """Return a paragraph for man(1): filled, or literal if it is laid out."""
    return format_literal(text) if parsers.LAID_OUT.search(text) else escape_text(text)


def format_literal(text: str) -> str:
    """Return lines that man(1) must not join."""
    return f".nf\n{escape_text(text)}\n.fi"


def escape_text(text: str) -> str:
    """Escape characters with a meaning in troff."""
    return text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")


if __name__ == "__main__":
    sys.exit(main())
