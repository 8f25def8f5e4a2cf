"""collect() and its samples over time: one file of a node counts, and none is lost or doubled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.collect import study as HELP

from steelyard.analysis.collect import sample_import as samples

query = HELP.query
FIRST, SECOND = HELP.run_id("array", 0), HELP.run_id("array", 3)


@pytest.fixture
def study(tmp_path: Path) -> Any:
    study = HELP.Study(tmp_path)
    study.everything()
    return study


def samples_of(study: Any, run: str) -> list[tuple[float, float]]:
    """unix_s and cpu_s."""
    where = f"WHERE run_id = '{run}' ORDER BY ALL"
    return query(study, f"SELECT unix_s, cpu_s FROM samples {where}")  # type: ignore[no-any-return]


def counted(study: Any) -> list[tuple[Any, ...]]:
    """Return the numbers of samples in `sources` and `sample_parts`, and the real number."""
    return query(  # type: ignore[no-any-return]
        study,
        "SELECT (SELECT sum(samples) FROM sources), (SELECT sum(samples) FROM sample_parts), "
        "(SELECT count(*) FROM samples), (SELECT count(*) FROM "
        "(SELECT DISTINCT run_id, attempt, node FROM sources)) = (SELECT count(*) FROM sources)",
    )


def test_of_two_records_of_a_node_the_later_ones_samples_take_the_place_of_the_others(
    study: Any,
) -> None:
    study.collect()
    before = samples_of(study, FIRST)
    row = study.task_row("2", 0)
    start = row.start_unix_s + 1
    HELP.write_record(study.record_dir / row.job_id, row.nodes[0], start, row.job_id)
    study.collect()
    assert samples_of(study, FIRST) == [(unix_s + 1, cpu_s) for unix_s, cpu_s in before]
    assert counted(study) == [(21, 21, 21, True)]
    assert study.collect().sample_files == 0


def test_two_files_that_change_places(study: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record names their node: those of the two nodes of a job were mixed up."""
    monkeypatch.setattr(samples, "ROWS_AT_ONCE", 1)  # the first is written when the second comes
    study.collect()
    run = HELP.run_id("twonodes")
    sql = f"SELECT node, samples FROM sources WHERE run_id = '{run}' ORDER BY path"
    (one, _), (two, _) = query(study, sql)
    folder = study.dir / "records" / "11"
    files = sorted(folder.glob("*.csv"))
    with files[1].open("a", encoding="utf-8") as more:  # to distinguish them
        more.write(files[1].read_text(encoding="utf-8").splitlines()[-1] + "\n")
    for path, node in zip(files, (two, one), strict=True):
        record = path.with_suffix(".json")
        document = json.loads(record.read_text(encoding="utf-8")) | {"node": node}
        record.write_text(json.dumps(document), encoding="utf-8")
    (study.record_dir / "11").rename(study.record_dir / "11.kept")
    study.collect()
    assert query(study, sql) == [(two, 3), (one, 4)]
    nodes = f"SELECT node, count(*) FROM samples WHERE run_id = '{run}' GROUP BY ALL ORDER BY 2"
    assert query(study, nodes) == [(two, 3), (one, 4)]
    assert counted(study) == [(22, 22, 22, True)]


def test_samples_lost_with_a_part_whose_files_are_gone(study: Any) -> None:
    """Of a file over midnight the rest remains, and the missing part is reported."""
    row = study.task_row("2", 0)
    (path,) = (study.record_dir / row.job_id).glob("*.csv")
    header, first, *rest = path.read_text(encoding="utf-8").splitlines(keepends=True)
    cells = first.split(",")
    cells[0] = f"{float(cells[0]) - 86400:.6f}"
    path.write_text(header + ",".join(cells) + "".join(rest), encoding="utf-8")
    study.collect()
    before = samples_of(study, FIRST)
    early, *late = sorted((study.dir / "parquet" / "samples").glob("*/*.parquet"))
    early.unlink()
    (study.dir / "records" / row.job_id / path.name).unlink()
    path.unlink()
    found = study.collect()
    assert samples_of(study, FIRST) == before[1:]
    (gap,) = (g.reason for g in found.gaps if "lost with a Parquet" in g.reason)
    assert gap.endswith(": 1 sample is lost with a Parquet file, and cannot be read again")
    assert counted(study) == [(20, 20, 20, True)]
    for path in late:
        path.write_bytes(b"")
    (gap,) = (g.reason for g in study.collect().gaps if "samples are lost" in g.reason)
    assert gap.count(" lost with a Parquet file") == 2
    assert samples_of(study, FIRST) == [] and len(samples_of(study, SECOND)) == 3
    assert counted(study) == [(18, 18, 18, True)]


def test_samples_that_changed_and_are_as_long_as_before_are_read_again(study: Any) -> None:
    study.collect()
    before = samples_of(study, FIRST)
    row = study.task_row("2", 0)
    (path,) = (study.record_dir / row.job_id).glob("*.csv")
    size_bytes = path.stat().st_size
    text = path.read_text(encoding="utf-8").replace(",5.000000,", ",6.000000,")
    path.write_text(text, encoding="utf-8")
    assert path.stat().st_size == size_bytes
    study.collect()
    assert samples_of(study, FIRST) == [*before[:-1], (before[-1][0], 6.0)]
