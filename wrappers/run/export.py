"""Exports the figures of `steelyard run` as JSON, CSV or Markdown, to stdout or a file."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.run import results_text
from steelyard.wrappers.run.results import RunResults

FORMATS = ("csv", "json", "md")
COLUMNS = ("metric", "unit", "mean", "sd", "low", "high", "min", "max", "n", "scope", "reason")
RATIOS = ("times_fastest", "times_low", "times_high")


def parse_export(text: str) -> tuple[str, Path | None]:
    """Return format and path of `csv` or `results.csv`; without a file the path is None, for
    stdout."""
    if text in FORMATS:
        return text, None
    path = Path(text)
    if path.suffix.removeprefix(".") not in FORMATS or not path.parent.is_dir():
        folder = "" if path.parent.is_dir() else f"; there is no folder {path.parent}"
        raise UsageError(
            f"--export {text}: expected csv, json or md, or a file such as results.csv{folder}",
            part=text,
        )
    return path.suffix.removeprefix("."), path


def write_export(outcome: RunResults, kind: str, path: Path | None) -> None:
    """Write one export."""
    text = {"csv": as_csv, "json": as_json, "md": as_markdown}[kind](outcome)
    if path is None:
        print(text, end="")
    else:
        path.write_text(text, encoding="utf-8")


def as_json(outcome: RunResults) -> str:
    """Return the JSON document with every run."""
    return json.dumps(outcome.as_json(), indent=2, ensure_ascii=False, default=str) + "\n"


def as_csv(outcome: RunResults) -> str:
    """Return CSV with a row per command and metric, in seconds and bytes; unknown values are
    empty."""
    names = sorted({name for one in outcome.commands for name in one.command.parameters})
    ratios = {one.place: (one.ratio, one.low, one.high) for one in outcome.comparisons}
    if ratios:
        ratios[outcome.comparisons[0].baseline] = (1.0, None, None)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["command", *(f"parameter_{name}" for name in names), *COLUMNS, *RATIOS])
    for index, one in enumerate(outcome.commands):
        head = [one.command.text, *(one.command.parameters.get(name, "") for name in names)]
        for entry in one.metrics:
            times = ratios.get(index, ()) if entry is one.elapsed else ()
            cells = [getattr(entry, column) for column in COLUMNS]
            writer.writerow([*head, *cells, *times, *[None] * (len(RATIOS) - len(times))])
    return out.getvalue()


def as_markdown(outcome: RunResults) -> str:
    """Return a Markdown table with a row per command: its time, and its ratio to the fastest."""
    ratios = {one.place: one for one in outcome.comparisons}
    best = next(iter(ratios.values())).baseline if ratios else None
    lines = [
        "| command | mean ± sd | 95 % interval | min … max | n | times the fastest |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for index, one in enumerate(outcome.commands):
        if one.elapsed.mean is None:
            cells: list[object] = ["–"] * 4
        else:
            cells = [
                "–" if cell is None else cell for cell in results_text.format_row(one.elapsed)[1:]
            ]
        text = one.command.text.replace("|", "\\|").replace("\n", " ")
        ratio = "1" if index == best else results_text.format_ratio(ratios.get(index))
        lines.append(f"| `{text}` | {' | '.join(map(str, cells))} | {ratio} |")
    return "\n".join(lines) + "\n"
