"""Text output of all commands: JSON, tables, and numbers for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

PIPE_WIDTH = 200  # columns


def print_json(value: object) -> None:
    """Print one JSON document on stdout, for --json; characters that stdout cannot encode are
    escaped."""
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    json.dump(value, sys.stdout, indent=2, ensure_ascii=not utf8, default=str)
    sys.stdout.write("\n")


def plain(text: str) -> str:
    """Return the text with `?` for control characters: names and tags may come from any user."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)


def print_line(text: str) -> None:
    """Print text from other users or programs as one line without control characters."""
    print(plain(text.replace("\n", "?")))


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> None:
    """Print a plain table; columns whose cells are all numbers are right-aligned."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    body = [list(row) for row in rows]
    table = Table(title=title or None, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for index, heading in enumerate(headings):
        numeric = body and all(isinstance(row[index], int | float | None) for row in body)
        table.add_column(heading, justify="right" if numeric else "left", overflow="fold")
    for row in body:
        table.add_row(*("–" if cell is None else plain(str(cell)) for cell in row))
    console = Console()
    if console.is_terminal:
        console.print(table, markup=False)
        return
    # A pipe has no width: never truncate or pad what a program reads.
    console = Console(width=PIPE_WIDTH)
    with console.capture() as capture:
        console.print(table, markup=False)
    print("\n".join(line.rstrip() for line in capture.get().splitlines()))


def format_bytes(value: float | None) -> str:
    """Return, for example, `1.5 GB` (powers of 1000); `–` for None."""
    if value is None:
        return "–"
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 1000:
            return f"{value:.3g} {unit}" if unit != "B" else f"{value:.0f} B"
        value /= 1000
    return f"{value:.3g} TB"


def format_seconds(value: float | None) -> str:
    """Return, for example, `12.3 ms`, `4.56 s` or `1:02:03`; `–` for None."""
    if value is None:
        return "–"
    if value < 0:  # the low end of a wide interval
        return f"-{format_seconds(-value)}"
    if value < 1e-3:
        return f"{value * 1e6:.3g} µs"
    if value < 1:
        return f"{value * 1e3:.3g} ms"
    if value < 120:
        return f"{value:.3g} s"
    minutes, seconds = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """Yield a function that shows phase, done and total: a bar per phase on a terminal, nothing
    elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description:<12}"), BarColumn(), MofNCompleteColumn())
    screen = Console(file=sys.stderr)
    with Progress(
        *columns, console=screen, transient=True, disable=not screen.is_terminal
    ) as progress:
        tasks = {}

        def show(phase: str, done: int, total: int) -> None:
            if phase not in tasks:
                tasks[phase] = progress.add_task(phase, total=total)
            progress.update(tasks[phase], completed=done, total=total)

        yield show
