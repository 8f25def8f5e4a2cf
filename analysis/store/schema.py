"""The statements that create a study's database, from schema.sql and schema_views.sql.

Each @name@ in them is replaced by SQL made from the totals of facts/quantities.def.
"""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Callable, Iterable

from steelyard.facts import quantities
from steelyard.facts.quantities import COUNTERS, METRICS, TOTALS, Column, Total

FILES = ("schema.sql", "schema_views.sql")
FILLED = re.compile(r"@(\w+)@")


def find_sql_type(quantity: Column | Total) -> str:
    """Return the DuckDB type of a quantity's values."""
    return "DOUBLE" if quantity.is_real else "BIGINT"


def build_schema(*files: str) -> str:
    """Return the statements that create an empty database, or those of some of its files."""
    folder = importlib.resources.files(__package__)
    text = "\n".join(folder.joinpath(name).read_text("utf-8") for name in files or FILES)
    return FILLED.sub(lambda found: PARTS[found[1]](), text)


def format_columns(totals: Iterable[Total]) -> str:
    """Return the column definitions for these totals."""
    return ",\n    ".join(f"{total.name} {find_sql_type(total)}" for total in totals)


def list_stored_totals() -> list[Total]:
    """Return the totals that are columns of the table `records`."""
    return [total for total in TOTALS.values() if total.in_database]


def format_comments() -> str:
    """Return the SQL comments that describe the totals of a record."""
    texts = ((total.name, total.meaning.replace("'", "''")) for total in list_stored_totals())
    return "\n".join(f"COMMENT ON COLUMN records.{name} IS '{text}';" for name, text in texts)


def make_node_sum_sql(total: Total) -> str:
    """Return SQL for a total over a run's nodes, which is NULL if any node's value is unknown."""
    name, join = total.name, "max" if total.over_nodes == "LARGEST" else "sum"
    known = f"bool_and(idle OR {name} IS NOT NULL)"
    if total.is_of_node:
        known = f"bool_and(alone) AND count({name}) = count(*)"
    return f"CASE WHEN {known} THEN {join}({name}) END AS {name}"


def make_metric_choice_sql(of_node: bool) -> str:
    """Return SQL cases that choose a metric's column of `totals`, or of the program's figures."""
    found = [total for total in METRICS.values() if total.is_of_node == of_node]
    return "\n        ".join(
        f"WHEN m.metric = '{one.name}' THEN {f't.{one.name}' if of_node else make_program_figure_sql(one)}"
        for one in found
    )


def make_program_figure_sql(total: Total) -> str:
    """Return SQL for the program's own figure if it is known, else the job's total.

    Its memory is at most the job's, and at least that of its largest process.
    """
    name = total.name
    if total.is_largest:
        least = f"greatest(o.largest_process_bytes, least(o.{name}, t.{name}))"
        return f"CASE WHEN o.{name} IS NULL THEN t.{name} ELSE {least} END"
    return f"coalesce(o.{name}, t.{name})"


PARTS: dict[str, Callable[[], str]] = {
    "totals": lambda: format_columns(list_stored_totals()),
    "comments_on_totals": format_comments,
    "counters": lambda: format_columns(METRICS[name] for name in COUNTERS),
    "totals_over_nodes": lambda: ",\n        ".join(map(make_node_sum_sql, METRICS.values())),
    "metrics": lambda: ", ".join(f"('{m.name}', '{m.unit}')" for m in METRICS.values()),
    "metrics_of_nodes": lambda: make_metric_choice_sql(of_node=True),
    "metrics_of_processes": lambda: make_metric_choice_sql(of_node=False),
}


# The fixed columns; files may have more (zones, devices), or fewer in a later version.
SAMPLE_COLUMNS = {column.name: find_sql_type(column) for column in quantities.COLUMNS}
