"""collect(): jobs of every kind become rows with their state, and nothing is doubled or lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.unit.collect import study as HELP

from steelyard.analysis.store.database import SCHEMA_VERSION

query, run_id, content = HELP.query, HELP.run_id, HELP.content


RELEASES = [*(pytest.param(old, marks=pytest.mark.slow) for old in ("22.05", "24.11")), "26.05"]


def made(folder: Path, release: str) -> Any:
    study = HELP.Study(folder, release)
    study.everything()
    return study


@pytest.fixture(scope="module", params=RELEASES)
def collected(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Any:
    """Under each release's accounting, collected once: only to be read."""
    study = made(tmp_path_factory.mktemp("collected"), request.param)
    study.collect()
    return study


@pytest.fixture(params=RELEASES)
def study_of_each(tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    """To be collected, under each release's accounting."""
    return made(tmp_path, request.param)


@pytest.fixture
def study(tmp_path: Path) -> Any:
    """To be collected; what is looked at does not depend on the release."""
    return made(tmp_path, HELP.RELEASE)


def state(study: Any, name: str, task: int = 0) -> tuple[str, int, str | None]:
    """Return state, number of attempts, and the attempt that counts."""
    (row,) = query(
        study, f"SELECT state, attempts, attempt FROM runs WHERE run_id = '{run_id(name, task)}'"
    )
    return row  # type: ignore[return-value]


def test_every_kind_of_job_has_its_state(collected: Any) -> None:
    raw = {task: collected.task_row("2", task).job_id for task in range(4)}
    assert state(collected, "array", 0) == ("completed", 1, f"{raw[0]}.0")
    assert state(collected, "array", 1) == ("failed", 1, f"{raw[1]}.0")
    assert state(collected, "array", 2) == ("failed", 1, f"{raw[2]}.0")
    assert state(collected, "timeout") == ("timeout", 1, "4.0")
    assert state(collected, "cancelled") == ("cancelled", 1, "6.0")
    assert state(collected, "held") == ("cancelled", 1, "7.0")
    assert state(collected, "twonodes") == ("completed", 1, "11.0")
    assert state(collected, "running") == ("running", 1, "21.0")
    assert state(collected, "unknown") == ("lost", 1, "4000_0.0")
    ((planned,),) = query(collected, "SELECT state FROM runs WHERE run_id LIKE '%ffffffff%'")
    assert planned == "planned"


def test_a_requeued_job_has_a_row_per_start_and_the_last_counts(collected: Any) -> None:
    assert state(collected, "twice") == ("completed", 3, "16.2")
    rows = query(
        collected,
        "SELECT attempt, restart_count, state FROM attempts WHERE job_id = '16' ORDER BY ALL",
    )
    assert rows == [
        ("16.0", 0, "requeued"),
        ("16.1", 1, "requeued"),
        ("16.2", 2, "completed"),
    ]
    assert state(collected, "requeue") == ("cancelled", 2, "5.1")


def test_records_go_to_the_start_they_were_made_in(collected: Any) -> None:
    rows = query(collected, "SELECT attempt, value FROM tags WHERE key = 'restart' ORDER BY ALL")
    assert rows == [("16.0", "0"), ("16.1", "1"), ("16.2", "2")]


def test_array_tasks_that_wait_or_never_started(collected: Any) -> None:
    running = collected.task_row("22", 0).job_id
    assert state(collected, "waiting", 0) == ("running", 1, f"{running}.0")
    assert [state(collected, "waiting", n) for n in (1, 2, 3)] == [
        ("pending", 1, f"22_{n}.0") for n in (1, 2, 3)
    ]
    # 3 and 4 are in the accounting as cancelled; 0, 1, 2 have no row at all.
    assert [state(collected, "heldarray", n)[0] for n in range(5)] == ["cancelled"] * 5
    rows = query(
        collected, "SELECT start_unix_s, exit_code, nodes FROM attempts WHERE array_job_id = '8'"
    )
    assert rows == [(None, None, [])] * 5


def test_reasons_are_sentences(collected: Any) -> None:
    reasons = dict(
        query(collected, "SELECT attempt, reason FROM attempts WHERE attempt LIKE '_.0'")
    )
    assert reasons["4.0"] == "the time limit of 1 min was reached"
    assert reasons["6.0"] == "cancelled by user id 0"
    assert reasons["2.0"] is None


def test_figures_come_with_unit_and_direction(collected: Any) -> None:
    rows = query(
        collected,
        "SELECT client, iteration, value, unit, better, is_primary FROM results "
        f"WHERE run_id = '{run_id('array')}' AND metric = 'seconds' ORDER BY iteration",
    )
    assert rows == [
        (0, 1, 0.003632290, "s", "lower", True),
        (0, 2, 0.001165153, "s", "lower", True),
        (0, 3, 0.001164872, "s", "lower", True),
    ]


def measurements(study: Any, run: str) -> dict[str, float | None]:
    return dict(query(study, f"SELECT metric, value FROM measurements WHERE run_id = '{run}'"))


def test_measurements_are_one_value_per_run(collected: Any) -> None:
    found = measurements(collected, run_id("twonodes"))
    assert found["seconds"] == pytest.approx((0.003632290 + 0.001165153 + 0.001164872) / 3)
    assert found["elapsed_s"] == 0.5  # of the benchmark, not summed over nodes
    assert (found["cpu_s"], found["rchar_bytes"]) == (10.0, 200)
    assert found["max_memory_bytes"] == 3000  # of the largest node
    assert found["energy_j"] is None
    twice = query(
        collected, "SELECT run_id, metric FROM measurements GROUP BY ALL HAVING count(*) > 1"
    )
    assert twice == []


def test_a_total_without_one_node_is_none(study: Any) -> None:
    row = study.row("11")
    next((study.record_dir / "11").glob(f"{row.nodes[0]}.*.json")).unlink()
    study.collect()
    assert measurements(study, run_id("twonodes"))["cpu_s"] is None
    gaps = query(study, "SELECT kind, node FROM gaps WHERE attempt = '11.0'")
    assert gaps == [("record", row.nodes[0])]


def test_times_are_those_of_the_run_in_the_job(collected: Any) -> None:
    row = collected.row("11")
    ((start, end, elapsed, wait, clients, nodes),) = query(
        collected,
        "SELECT start_unix_s, end_unix_s, elapsed_s, wait_s, clients, nodes FROM attempts "
        "WHERE attempt = '11.0'",
    )
    assert (start, end, elapsed) == (row.start_unix_s + 0.25, row.start_unix_s + 0.75, 0.5)
    assert (wait, clients, nodes) == (row.start_unix_s - row.submit_unix_s, 1, list(row.nodes))


def test_accounting_is_kept_as_text_with_its_steps(collected: Any) -> None:
    rows = query(
        collected,
        "SELECT JobID, attempt, State FROM accounting WHERE JobIDRaw LIKE '16%' ORDER BY ALL",
    )
    assert rows.count(("16", "16.0", "REQUEUED")) == rows.count(("16", "16.2", "COMPLETED")) == 1
    assert {a for j, a, _ in rows if j == "16.batch"} == {"16.0", "16.1", "16.2"}
    ((waiting, run),) = query(
        collected, "SELECT attempt, run_id FROM accounting WHERE JobID LIKE '22\\_[%' ESCAPE '\\'"
    )
    assert (waiting, run) == (None, None)


def test_samples_are_read_once(study: Any) -> None:
    first = study.collect()
    assert first.sample_files == 7
    assert query(study, "SELECT count(*), max(elapsed_s), max(cpu_s) FROM samples") == [
        (21, 20.0, 5.0)
    ]
    assert query(study, "SELECT count(energy_j) FROM samples") == [(0,)]  # empty cells are NULL
    assert study.collect().sample_files == 0


def test_collecting_twice_changes_nothing(study: Any) -> None:
    study.collect()
    before = content(study)
    study.collect()
    assert content(study) == before


def test_two_halves_are_one_whole(study_of_each: Any, tmp_path: Path) -> None:
    study_of_each.collect()
    other = HELP.Study(tmp_path / "other", study_of_each.accounting.release)
    other.write_plan(("array", "timeout"))
    row = other.task_row("2", 0)
    other.attempt(run_id("array"), row)
    other.record(row, row.nodes[0])
    other.collect()
    for path in (other.dir / "runs", other.record_dir):
        for job in path.iterdir():
            for file in sorted(job.rglob("*"), reverse=True):
                file.rmdir() if file.is_dir() else file.unlink()
            job.rmdir()
    other.write_plan()
    other.everything()
    other.collect()
    mine, theirs = content(study_of_each), content(other)
    for rows in (mine, theirs):  # files have the times at which they were written
        rows["sources"] = [row.split(", ")[0] for row in rows["sources"]]
    assert [
        text.replace(str(tmp_path / "other"), str(tmp_path)) for text in theirs.pop("gaps")
    ] == (mine.pop("gaps"))
    assert theirs == mine


def test_only_jobs_that_may_have_changed_are_asked_for(study_of_each: Any) -> None:
    study_of_each.now_unix_s += 3600
    study_of_each.collect()
    assert len(study_of_each.accounting.asked[0]) == len(HELP.SUBMITTED)
    study_of_each.collect()
    # Finished: all except those that run, are pending, are unknown, or lack tasks in the
    # accounting.
    assert set(study_of_each.accounting.asked[1]) == {"21", "22", "4000", "8"}


def test_the_records_of_a_reused_job_id_are_not_taken(study: Any) -> None:
    row = study.row("11")
    long_ago = HELP.write_record(study.record_dir / "11", "n9", row.start_unix_s - 86400, "11")
    study.collect()
    assert query(study, "SELECT count(*) FROM records WHERE node = 'n9'") == [(0,)]
    assert not (study.dir / "records" / "11" / long_ago.name).exists()


def test_jobs_of_an_earlier_cluster_with_the_same_ids_are_not_taken(study_of_each: Any) -> None:
    text = (study_of_each.dir / "submissions.jsonl").read_text(encoding="utf-8")
    later = text.replace(
        str(study_of_each.submitted_unix_s), str(study_of_each.submitted_unix_s + 86400)
    )
    (study_of_each.dir / "submissions.jsonl").write_text(later, encoding="utf-8")
    study_of_each.now_unix_s += 90000
    done = study_of_each.collect(record_dirs=[])
    assert query(study_of_each, "SELECT count(*) FROM accounting") == [(0,)]
    assert "running" not in done.states and "timeout" not in done.states


def test_records_are_kept_when_the_admin_expires_them(study: Any) -> None:
    study.collect()
    before = content(study)
    for file in study.record_dir.rglob("*.*"):
        file.unlink()
    study.collect()
    assert content(study) == before


def test_a_job_that_still_runs_leaves_its_record_to_the_next_time(study_of_each: Any) -> None:
    row = study_of_each.row("21")
    study_of_each.record(row, row.nodes[0], complete=False)
    done = study_of_each.collect()
    assert query(study_of_each, "SELECT count(*) FROM records WHERE attempt = '21.0'") == [(0,)]
    assert not [gap for gap in done.gaps if gap.attempt == "21.0"]


def test_local_runs_have_their_record_beside_them(study: Any) -> None:
    run = "filesystem-ffffffff-001"
    folder = study.attempt(run, study.row("11"), scheduler="local", job_id=None, nodes=["here"])
    folder = folder.rename(folder.with_name("local.1"))
    HELP.write_record(folder / "record" / "1", "here", study.row("11").start_unix_s, "1")
    study.collect()
    rows = query(
        study,
        "SELECT a.scheduler, a.state, a.job_id, r.node, r.vm FROM attempts AS a "
        f"JOIN records AS r USING (run_id, attempt) WHERE run_id = '{run}'",
    )
    assert rows == [("local", "completed", None, "here", "kvm")]


def test_parquet_files_say_the_same(collected: Any) -> None:
    parquet = collected.dir / "parquet"
    for table in ("runs", "attempts", "results", "records", "tags", "accounting", "gaps", "meta"):
        inside = query(collected, f"SELECT count(*) FROM {table}")
        file = parquet / f"{table}.parquet"
        assert duckdb.sql(f"SELECT count(*) FROM '{file}'").fetchall() == inside
    day = [path.name for path in (parquet / "samples").iterdir()]
    assert day == ["day=2026-11-21"]
    samples = duckdb.sql(f"SELECT count(*) FROM '{parquet}/samples/*/*.parquet'").fetchall()
    assert samples == [(21,)]


def files_of_samples(study: Any) -> list[Path]:
    return sorted((study.dir / "parquet" / "samples").glob("*/*"))


def test_new_samples_are_further_files(study: Any) -> None:
    study.collect()
    first = files_of_samples(study)
    row = study.task_row("2", 1)
    study.record(row, row.nodes[0])
    study.collect()
    found = duckdb.sql(f"SELECT count(*) FROM '{study.dir}/parquet/samples/*/*.parquet'").fetchall()
    assert found == [(24,)]
    assert set(first) < set(files_of_samples(study))


def test_what_a_killed_collect_left_is_removed(study: Any) -> None:
    study.collect()
    whole = files_of_samples(study)
    left = study.dir / "parquet" / "samples" / "day=2000-01-01" / "000007.parquet"
    left.parent.mkdir()
    left.write_bytes(whole[0].read_bytes())
    assert query(study, "SELECT count(*) FROM samples") == [(21,)]  # no reader takes it
    study.collect()
    assert files_of_samples(study) == whole and not left.parent.exists()


def test_meta_says_what_this_is(collected: Any) -> None:
    ((study_name, seed, version, baseline, toml, moment),) = query(
        collected,
        "SELECT study, seed, schema_version, baseline, toml, collected_unix_s FROM meta",
    )
    assert (study_name, seed, version, json.loads(baseline)) == (
        "x",
        1,
        SCHEMA_VERSION,
        {"clients": 1},
    )
    assert toml == '[study]\nname = "x"\n' and moment == collected.now_unix_s
