"""Draws docs/demo.svg, the README's forest plot, from the report recorded in docs/quick-start.txt.

The recording has each overhead of the demo's virtual node with its interval, as `steelyard report`
printed it. The figure is drawn by the code of the report.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from steelyard.analysis.figures import drawing, forest_plot
from steelyard.analysis.stats.overhead import Overhead
from steelyard.analysis.stats.overhead_verdict import Direction, Verdict
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.study_data import Metric

PAGES = Path(__file__).parent
STUDY = "virtual"
HIGHER = {"mops"}  # larger values are better
PRIMARY = {"seconds", "mops"}
FIGURE = re.compile(
    r"^    (\w+) +(?:lower by )?([\d.]+) (?:times as (?:long|high)|%) \(([\d.]+) … ([\d.]+)\), "
    r"n = (\d+) \+ (\d+)$"
)


def recorded_rows(text: str) -> Iterator[Row]:
    """Yield the overheads of node_type=virtual, without CPU seconds of guests (SY32)."""
    report = text.partition(f"{STUDY}: 24 of 24 runs completed")[2].partition("\nfindings:")[0]
    variant = condition = ""
    for line in report.splitlines():
        if re.fullmatch(r"\w+", line):
            variant = line
        elif re.fullmatch(r"  node_type=\w+.*", line):
            condition = line.split()[0]
        found = FIGURE.match(line)
        if found and condition == "node_type=virtual" and found[1] != "cpu_s":
            yield recorded_row(variant, condition, found)


def recorded_row(variant: str, condition: str, found: re.Match[str]) -> Row:
    """Return one line of the report."""
    name, better = found[1], "higher" if found[1] in HIGHER else "lower"
    middle, low, high = (float(found[n]) for n in (2, 3, 4))
    if "times" in found[0]:
        value, ends = middle - 1, (low - 1, high - 1)
    else:
        value, ends = -middle / 100, (-high / 100, -low / 100)
    group = SimpleNamespace(
        variant=variant, label=condition, baseline_label="node_type=physical", is_baseline=False
    )
    return Row(
        group=cast(Any, group),
        metric=Metric(name, None, better, name in PRIMARY),
        run_ids=("",) * int(found[5]),
        values=(0.0,) * int(found[5]),
        missing=0,
        overhead=Overhead(value, *ends, int(found[5]), int(found[6]), "Fieller"),
        verdict=Verdict(Direction.WORSE, ""),
    )


def main() -> None:
    """Write the picture."""
    rows = list(recorded_rows((PAGES / "quick-start.txt").read_text(encoding="utf-8")))
    data = SimpleNamespace(meta=SimpleNamespace(study=STUDY), records=[])
    with drawing.use_style():
        figure = forest_plot.plot_forest(cast(Any, SimpleNamespace(data=data)), rows, narrow=False)
    drawing.save(replace(figure, name="demo"), PAGES, ("svg",))


if __name__ == "__main__":
    main()
