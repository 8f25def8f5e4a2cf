"""A script with pandas and matplotlib on the same database: the peer of bench/report.py.

Mean, standard deviation, n and Student's interval of every condition and metric, overheads against
the baseline, one bar figure of the main metric as SVG, all in one HTML file. It has no tests, no
correction for multiple comparisons, no outliers, medians or findings, no other figures, and no list
of the runs.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import duckdb
import matplotlib as mpl
import pandas as pd

mpl.use("agg")
import matplotlib.pyplot as plt
from scipy import stats

READ = """
SELECT r.condition_label AS condition, r.is_baseline, r.condition->>'clients' AS clients, m.metric,
    m.value
FROM measurements AS m JOIN runs AS r USING (run_id) WHERE r.state = 'completed' AND r.valid
"""


def means(database: Path) -> pd.DataFrame:
    """Return one row per condition and metric."""
    with duckdb.connect(str(database), read_only=True) as connection:
        values = connection.execute(READ).df()
    keys = ["metric", "clients", "condition", "is_baseline"]
    found = values.groupby(keys)["value"].agg(["count", "mean", "std", "min", "max"]).reset_index()
    half = stats.t.ppf(0.975, found["count"] - 1) * found["std"] / found["count"] ** 0.5
    found["low"], found["high"] = found["mean"] - half, found["mean"] + half
    base = found[found["is_baseline"]].set_index(["metric", "clients"])["mean"].rename("base")
    found = found.join(base, on=["metric", "clients"])
    return found.assign(overhead=found["mean"] / found["base"] - 1)


def bars(found: pd.DataFrame) -> str:
    """Draw the main metric by condition."""
    figure, axes = plt.subplots(figsize=(6.6, 0.24 * len(found)), layout="constrained")
    axes.barh(found["condition"], found["mean"], xerr=found["high"] - found["mean"])
    axes.set_xlabel("seconds")
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg")
    return buffer.getvalue()


def main(database: Path, output: Path) -> None:
    """Write the page."""
    found = means(database)
    figure = bars(found[found["metric"] == "seconds"])
    table = found.to_html(index=False)
    output.write_text(f"<!DOCTYPE html><html><body>{figure}{table}</body></html>", "utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
