"""Every SQL block of the pages, put to DuckDB: on a study, or on a cluster's files."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import duckdb
import pytest
from tests.unit.cluster.sacct_lab import Lab, lab

from steelyard.analysis.summary.summary import summarize

from ..cluster_up.test_collect import run, several

__all__ = ["lab"]
ROOT = Path(__file__).resolve().parents[3]
BLOCK = re.compile(r"^```sql\n(.*?)^```", re.MULTILINE | re.DOTALL)
CLUSTER = "/var/lib/steelyard/cluster"
QUERIES = [
    (page.name, sql)
    for page in sorted(ROOT.glob("docs/**/*.md"))
    for sql in BLOCK.findall(page.read_text(encoding="utf-8"))
]
VIEW_OF_SAMPLES = [sql for _, sql in QUERIES if sql.startswith("CREATE VIEW samples ")]
QUERIES = [(page, sql) for page, sql in QUERIES if sql not in VIEW_OF_SAMPLES]
QUERIES.append(("summary.sql", (ROOT / "docs/summary.sql").read_text(encoding="utf-8")))
OF_STUDIES = [(page, sql) for page, sql in QUERIES if CLUSTER not in sql]
OF_CLUSTERS = [(page, sql) for page, sql in QUERIES if CLUSTER in sql]


@pytest.fixture(scope="module")
def study(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with samples and a check that does not agree."""
    folder: Path = synthetic.demo("pages", energy=True).write(tmp_path_factory.mktemp("sql"))
    with duckdb.connect(str(folder / "study.duckdb")) as base:
        base.execute(
            "INSERT INTO checks BY NAME SELECT run_id, attempt, 'cpu_s' AS quantity, 's' AS unit, "
            "'records' AS source_a, 1.0 AS value_a, 'scheduler' AS source_b, 2.0 AS value_b, "
            "'equal' AS rule, 0.5 AS bound, false AS agrees FROM runs LIMIT 1"
        )
    return folder


@pytest.mark.parametrize(("page", "sql"), OF_STUDIES)
def test_a_query_of_a_study_answers(
    page: str, sql: str, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(study)  # where the page's paths begin
    (view,) = VIEW_OF_SAMPLES
    with duckdb.connect(str(study / "study.duckdb"), read_only=True) as base:
        base.execute(view.replace("CREATE VIEW", "CREATE TEMP VIEW"))
        rows = base.execute(sql).fetchall()
    assert rows, page
    if page == "summary.sql":  # the means of the report
        summary = summarize(study)
        means = {row[:3]: row[4] for row in rows}
        told = [row for row in summary.rows if row.metric.is_primary and row.interval]
        assert len(told) == 8
        for row in told:
            assert row.interval is not None
            key = (row.group.variant, row.group.label, row.metric.name)
            assert means[key] == pytest.approx(row.interval.mean)


@pytest.mark.parametrize(("page", "sql"), OF_CLUSTERS)
def test_a_query_of_a_cluster_answers(page: str, sql: str, lab: Lab) -> None:
    several(lab)
    run(lab)
    query = sql.replace(CLUSTER, str(lab.dir)).replace("'2026-11-01'", "'1970-01-01'")
    rows = duckdb.execute(query).fetchall()
    if "GROUP BY" not in query:  # jobs one by one
        joules = [row[-1] for row in rows]
        assert joules == sorted(joules, reverse=True) and sum(joules) == 4 * 123.5 + 7 + 9
        return
    (row,) = rows
    assert row[1:] == (4 * 123.5 + 7 + 9, 6, 7), page  # the one that runs is in no file


def test_both_pages_are_among_them() -> None:
    assert {page for page, _ in QUERIES} >= {"collect.md", "cluster.md"}
    assert len(OF_STUDIES) >= 2 and "summary.sql" in dict(OF_STUDIES) and len(OF_CLUSTERS) >= 1
