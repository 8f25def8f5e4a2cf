"""A collected study for notebooks: relations, data frames, means, overheads and figures.

    import steelyard.analysis

    with steelyard.analysis.load("wan-latency.study") as study:
        study.table("runs")            # a DuckDB relation
        study.frame("measurements")    # a pandas data frame
        study.means                    # a relation: every mean and overhead of the report

docs/analysis.md has the tables and an example.
"""

from __future__ import annotations

import importlib.util
import re
import tempfile
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from steelyard.analysis.base.errors import MissingError, UsageError
from steelyard.analysis.findings.finding import Finding
from steelyard.analysis.findings.registry import find_all
from steelyard.analysis.report.export import Relation, build_relations
from steelyard.analysis.sources import study_sessions
from steelyard.analysis.store.row_files import Spool
from steelyard.analysis.summary.condition_parser import check_label
from steelyard.analysis.summary.database_connection import connect_to_database
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.study_data import StudyData, read_study
from steelyard.analysis.summary.summary import Summary, build_summary

if TYPE_CHECKING:
    import duckdb

    from steelyard.analysis.figures.drawing import Drawing

SUFFIX = ".study"
COMPUTED = frozenset(
    (
        "means",
        "values",
        "slopes",
        "tolerances",
        "nodes",
        "scaling",
        "scaling_laws",
        "optima",
        "shares",
        "findings",
    )
)


class Study:
    """A study's database, open for reading. Computed tables are computed once, on first use.

    Nothing is written to the study. Close it, or use it in a `with` statement: while a reader is
    open, collect is refused.
    """

    def __init__(self, folder: Path, include_invalid: bool = False) -> None:
        self.folder = folder
        self.include_invalid = include_invalid
        self._connection = connect_to_database(folder)
        self._written: set[str] = set()  # computed tables that the connection has

    def __repr__(self) -> str:
        return f"<study {self.folder}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database; relations of this study cannot be used afterwards."""
        self._connection.close()

    @property
    def tables(self) -> list[str]:
        """Tables and views of the database (docs/formats.md part 8), and those computed from it."""
        rows = self._connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main'"
        ).fetchall()
        return sorted({*COMPUTED, *(name for (name,) in rows)})

    def table(self, name: str) -> duckdb.DuckDBPyRelation:
        """Return a table or view, which is read when used; UsageError lists the known ones."""
        if name not in self.tables:
            raise UsageError(f"no table '{name}'; there are {', '.join(self.tables)}", name)
        if name in COMPUTED:
            self._compute(name)
        return self._connection.table(name)

    def sql(self, query: str) -> duckdb.DuckDBPyRelation:
        """Return a SELECT over the tables; the computed tables that it names are computed first."""
        for name in COMPUTED & set(re.findall(r"\w+", query.lower())):
            self._compute(name)
        return self._connection.sql(query)

    def frame(self, name: str) -> Any:
        """Return a table or view, computed or not, as a pandas data frame."""
        if importlib.util.find_spec("pandas") is None:  # DuckDB uses it for the frame
            raise MissingError(
                "a data frame needs pandas, which is not installed: `pip install pandas`; "
                "or use the relation itself (table, sql, means), which needs nothing more"
            )
        return self.table(name).df()

    @property
    def variants(self) -> list[str]:
        """The benchmarks, each with its parameters."""
        return self.summary.variants

    @property
    def conditions(self) -> list[str]:
        """The labels of the conditions, as row() takes them."""
        return self.summary.labels

    @cached_property
    def data(self) -> StudyData:
        """The data that the statistics are computed from."""
        return read_study(self.folder, self.include_invalid)

    @cached_property
    def summary(self) -> Summary:
        """Means, intervals, overheads and verdicts as Python objects."""
        return build_summary(self.data)

    @cached_property
    def findings(self) -> list[Finding]:
        """The findings of the report, the most severe first."""
        return find_all(self.summary)

    @property
    def means(self) -> duckdb.DuckDBPyRelation:
        """A row per variant, condition and metric: n, mean, interval, overhead, verdict …"""
        return self.table("means")

    @property
    def values(self) -> duckdb.DuckDBPyRelation:
        """A row per run and metric that counts, outliers marked."""
        return self.table("values")

    def row(self, variant: str, condition: str | Mapping[str, Any], metric: str) -> Row:
        """Return one metric under one condition; UsageError lists the existing ones.

        `condition` is `threads=2` or {"threads": 2}; factors that are left out have the baseline's
        level.
        """
        found = self.summary.row(variant, check_label(self.summary, condition), metric)
        if found is None:
            raise UsageError(
                f"no {metric} of '{variant}' under '{condition}'; variants: "
                f"{', '.join(self.summary.variants)}; conditions: {'; '.join(self.summary.labels)}"
            )
        return found

    def figures(self, variant: str) -> list[Drawing]:
        """The report's figures of a variant; each has a matplotlib figure and its numbers."""
        from steelyard.analysis.report.figures import draw_figures, variant_draws

        if variant not in self.summary.variants:
            known = ", ".join(self.summary.variants)
            raise UsageError(f"no variant '{variant}'; there are {known}", variant)
        return draw_figures(variant_draws(self.summary, variant))

    @cached_property
    def _computed(self) -> dict[str, Relation]:
        """The computed tables by name; `runs` is in the database, and read from there."""
        made = build_relations(self.summary, self.findings)
        return {relation.name: relation for relation in made if relation.name in COMPUTED}

    def _compute(self, name: str) -> None:
        """Write a computed relation to a temporary table."""
        if name in self._written:
            return
        relation = self._computed[name]
        with tempfile.TemporaryDirectory() as folder:
            with Spool(Path(folder) / "rows", relation.columns) as spool:
                for row in relation.rows:
                    spool.write(row)
            self._connection.execute(f'CREATE TEMP TABLE "{name}" AS {spool.select()}')
        self._written.add(name)


def load(study: str | Path, include_invalid: bool = False) -> Study:
    """Open a collected study by its folder, NAME, NAME@SESSION or NAME.toml; close it after use.

    Raises MissingError when it was not collected. `include_invalid`: runs whose conditions were not
    met count in means, too.
    """
    path = Path(study)
    name, at, session = path.name.rpartition("@")
    if at and not path.exists():
        path = (
            path.with_name(name.removesuffix(".toml") + study_sessions.SUFFIX)
            / f"{session}{SUFFIX}"
        )
    beside = path.with_name(path.name.removesuffix(".toml") + SUFFIX)
    folder = path if path.is_dir() else beside
    if not folder.is_dir():
        raise UsageError(
            f"{study}: no study's folder there, nor {beside}; give NAME{SUFFIX}", str(study)
        )
    return Study(folder, include_invalid)
