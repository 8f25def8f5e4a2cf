"""Delay, rate and loss of a varying link over the time of a run, from the records' steps.

See docs/formats.md part 9, `trace`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.analysis.figures.drawing import COLOURS, DASHES
from steelyard.analysis.summary.database_connection import open_database
from steelyard.analysis.summary.study_run import Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from steelyard.analysis.summary.summary import Summary


@dataclass(frozen=True)
class Quantity:
    """A number of a step, with its label and the divisor for it."""

    name: str
    label: str
    factor: float


QUANTITIES = (
    Quantity("delay_s", "delay (ms)", 1e-3),
    Quantity("rate_bit_per_s", "rate (Mbit/s)", 1e6),
    Quantity("loss", "loss (%)", 1e-2),
)
# Seconds since the job's start, and the values of QUANTITIES from then on.
Step = tuple[float, tuple[float | None, ...]]
Steps = dict[str, list[Step]]  # by node

# The samples have the start of their job by the same clock as the steps.
QUERY = """
WITH begun AS (
    SELECT run_id, attempt, node, min(unix_s - elapsed_s) AS began_unix_s FROM samples
    WHERE (run_id, attempt) IN ({marks}) GROUP BY ALL
),
told AS (
    SELECT b.*, unnest(from_json(record->'$.network_conditions.trace.step_log', '["JSON"]')) AS step
    FROM begun AS b JOIN records USING (run_id, attempt, node)
)
SELECT run_id, node, (step->>'unix_s')::DOUBLE - began_unix_s AS elapsed_s, {numbers}
FROM told ORDER BY run_id, node, elapsed_s
"""


def read_steps(summary: Summary, runs: Sequence[Run]) -> dict[str, Steps]:
    """Return the steps of each run whose link varied."""
    if not runs:
        return {}
    marks = ", ".join("(?, ?)" for _ in runs)
    numbers = ", ".join(f"(step->>'{q.name}')::DOUBLE" for q in QUANTITIES)
    keys = [key for run in runs for key in (run.run_id, run.attempt)]
    found: dict[str, Steps] = {}
    with open_database(summary.data.folder) as connection:
        rows = connection.execute(QUERY.format(marks=marks, numbers=numbers), keys).fetchall()
    for run_id, node, elapsed_s, *values in rows:
        if elapsed_s is not None:
            steps = found.setdefault(run_id, {}).setdefault(node, [])
            steps.append((elapsed_s, tuple(values)))
    return found


def has_variation(runs: Sequence[Steps]) -> list[Quantity]:
    """Return the quantities that any trace has."""
    return [
        quantity
        for at, quantity in enumerate(QUANTITIES)
        if any(v[at] is not None for run in runs for steps in run.values() for _, v in steps)
    ]


def draw_steps(axes: Axes, quantity: Quantity, steps: Steps, end_s: float) -> None:
    """Draw a line per node, constant from each step to the next, and until the run's end."""
    axes.set_ylabel(quantity.label)
    at = QUANTITIES.index(quantity)
    for index, lines in enumerate(steps.values()):
        known = [(max(when, 0.0), v[at]) for when, v in lines if v[at] is not None and when < end_s]
        if known:
            times = [*(when for when, _ in known), end_s]
            values = [(value or 0.0) / quantity.factor for _, value in known]
            axes.plot(
                times, [*values, values[-1]], drawstyle="steps-post", linewidth=1.3,
                color=COLOURS[index % len(COLOURS)], linestyle=DASHES[index % len(DASHES)],
            )  # fmt: skip
    if not axes.lines:
        text = "as the condition says, all the time" if not steps else "not said by the trace"
        axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", style="italic")
