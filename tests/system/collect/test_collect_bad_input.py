"""Bad input: each kind is a clear finding or error, no number is wrong, and nothing is lost."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.unit.collect import study as HELP

import steelyard.analysis
from steelyard.analysis.base.errors import MissingError, UsageError
from steelyard.analysis.collect import run_output_import as outputs
from steelyard.analysis.findings.registry import find_all
from steelyard.analysis.summary import parquet_summary
from steelyard.analysis.summary.summary import summarize
from steelyard.wrappers.commands import cli

query, run_id = HELP.query, HELP.run_id


@pytest.fixture
def study(tmp_path: Path) -> Any:
    study = HELP.Study(tmp_path)
    study.everything()
    return study


def gaps(study: Any, attempt: str = "11.0") -> list[tuple[str, str]]:
    return query(study, f"SELECT kind, reason FROM gaps WHERE attempt = '{attempt}' ORDER BY ALL")


# --- Parquet ----------------------------------------------------------------------------------


def test_a_truncated_parquet_file_is_told_and_written_anew(study: Any) -> None:
    study.collect()
    (path,) = (study.dir / "parquet" / "samples").glob("*/*.parquet")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UsageError, match=r"no whole Parquet file: `steelyard collect` writes it"):
        parquet_summary.summarize(study.dir, "duckdb")
    study.now_unix_s += 1
    study.collect()
    assert not path.exists()
    files = f"{study.dir}/parquet/samples/*/*.parquet"
    assert duckdb.sql(f"SELECT count(*) FROM '{files}'").fetchall() == [(21,)]


def test_a_lost_parquet_file_and_one_too_many_are_told(study: Any) -> None:
    study.collect()
    (path,) = (study.dir / "parquet" / "samples").glob("*/*.parquet")
    other = path.with_name("999999.parquet")
    shutil.copy(path, other)
    with pytest.raises(UsageError, match=r"999999.parquet is not of the last collect"):
        parquet_summary.summarize(study.dir, "duckdb")
    other.unlink()
    path.unlink()
    with pytest.raises(UsageError, match=r"00001.parquet is missing: `steelyard collect` mends"):
        parquet_summary.summarize(study.dir, "duckdb")


def test_parquet_files_that_a_collect_did_not_finish_are_not_read(study: Any) -> None:
    study.collect()
    (study.dir / "parquet" / "exported").unlink()
    with pytest.raises(UsageError, match="a collect writes it now or broke off"):
        parquet_summary.summarize(study.dir, "duckdb")


@pytest.mark.parametrize(
    ("name", "other"), [("it's [x] [[]", "it's x ["), ('100 % "*"', '100 % ""'), ("é, ; #{a}", "a")]
)
def test_a_folder_whose_name_is_a_pattern(tmp_path: Path, name: str, other: str) -> None:
    """`other` fits it, and holds what a killed collect left."""
    scratch = tmp_path / other / "x.study" / ".collect"
    scratch.mkdir(parents=True)
    for table in ("meta", "runs", "attempts", "results", "records", "tags", "gaps"):
        (scratch / f"{table}.jsonl").write_text("nothing", encoding="utf-8")
    study = HELP.Study(tmp_path / name)
    study.everything()
    study.collect()
    assert query(study, "SELECT count(*) FROM samples") == [(21,)]
    assert (study.dir / "parquet" / "exported").exists()


@pytest.mark.parametrize("name", ["why?", "back\\slash", os.fsdecode(b"\xff")])
def test_a_folder_that_duckdb_cannot_use(tmp_path: Path, name: str) -> None:
    study = HELP.Study(tmp_path / name)
    with pytest.raises(UsageError, match="rename the folder"):
        study.collect()
    assert not (study.dir / "study.duckdb").exists()


def test_halves_of_characters_do_not_end_a_collect(study: Any) -> None:
    r"""What a node wrote as `\ud800` is JSON, and Python reads it."""
    row = study.task_row("2", 0)
    record = study.record(row, row.nodes[0], tags={"key": "\ud800x"})
    document = json.loads(record.read_text(encoding="utf-8")) | {"node": "n\ud8001"}
    record.write_text(json.dumps(document), encoding="utf-8")
    for read in (7, 0):
        assert study.collect().sample_files == read
        assert query(study, "SELECT value FROM tags WHERE key = 'key'") == [("?x",)]
        nodes = query(
            study, "SELECT node, count(*) FROM samples WHERE node LIKE '%?%' GROUP BY ALL"
        )
        assert nodes == [("n?1", 3)]


def test_a_notebook_that_has_it_open_is_told_to_close_it(study: Any) -> None:
    study.collect()
    with (
        steelyard.analysis.load(study.dir),
        pytest.raises(UsageError, match=r"is open in this very process .*: close it first"),
    ):
        study.collect()
    study.collect()


@pytest.mark.parametrize("size_bytes", [0, 1024])
def test_a_database_whose_maker_was_killed(study: Any, size_bytes: int) -> None:
    study.collect()
    path = study.dir / "study.duckdb"
    path.write_bytes(path.read_bytes()[:size_bytes])
    with pytest.raises(UsageError, match="cannot be opened"):  # somebody may be making it
        study.collect()
    os.utime(path, (0, 0))
    study.collect()
    assert query(study, "SELECT count(*) FROM samples") == [(21,)]


def test_something_in_the_way_is_named(study: Any) -> None:
    (study.dir / "parquet").write_text("x", encoding="utf-8")
    with pytest.raises(MissingError, match="parquet/exported: Not a directory. See what is there"):
        study.collect()


# --- clusters and clocks ----------------------------------------------------------------------


def test_the_same_job_id_on_another_cluster(study: Any) -> None:
    row = study.row("11")
    job = {"scheduler": "slurm", "job_id": "11", "cluster": "other", "exclusive": False}
    study.record(row, row.nodes[0], job=job)
    study.collect()
    found = gaps(study)
    assert ("record", f"no record of job 11 on {row.nodes[0]}") not in found
    assert any("of the cluster other, left out: this one ran on steelyard" in r for _, r in found)
    nodes = query(study, "SELECT node FROM records WHERE attempt = '11.0'")
    assert nodes == [(row.nodes[1],)]


def test_a_clusters_name_in_capitals_is_the_same(study: Any) -> None:
    row = study.row("11")
    study.record(row, row.nodes[0], job={"job_id": "11", "cluster": "Steelyard"})
    study.collect()
    assert gaps(study) == []


@pytest.mark.parametrize("off_s", [3600, -3600])
def test_a_node_whose_clock_is_an_hour_off(study: Any, off_s: int) -> None:
    row = study.row("11")
    for path in (study.record_dir / "11").glob(f"{row.nodes[0]}.*"):
        path.unlink()
    HELP.write_record(study.record_dir / "11", row.nodes[0], row.start_unix_s + off_s, "11")
    study.collect()
    ((kind, reason),) = gaps(study)
    word = "after" if off_s > 0 else "before"
    assert kind == "record" and f"begins 3600 s {word} the job did" in reason
    assert f"Is the clock of {row.nodes[0]} off" in reason
    ((value,),) = query(
        study,
        f"SELECT value FROM measurements WHERE run_id = '{run_id('twonodes')}' "
        "AND metric = 'cpu_s'",
    )
    assert value is None


@pytest.mark.parametrize("off_s", [3600, -3600])
def test_a_node_whose_clock_is_an_hour_off_and_told_the_run(study: Any, off_s: int) -> None:
    """result.json has its time of the same clock."""
    row = study.row("11")
    for path in (study.record_dir / "11").glob(f"{row.nodes[0]}.*"):
        path.unlink()
    HELP.write_record(study.record_dir / "11", row.nodes[0], row.start_unix_s + off_s, "11")
    tell(study, "twonodes", "11.0", start_unix_s=row.start_unix_s + off_s + 0.25)
    study.collect()
    assert gaps(study) == []


def tell(study: Any, name: str, attempt: str, **fields: object) -> None:
    path = study.dir / "runs" / run_id(name) / attempt / "result.json"
    document = json.loads(path.read_text(encoding="utf-8")) | fields
    path.write_text(json.dumps(document), encoding="utf-8")


def set_back(study: Any, **fields: object) -> float:
    """The last start's record, by a clock that was set back into the time of the start before."""
    row, before = study.row("16", 2), study.row("16", 1)
    for path in (study.record_dir / "16").glob(f"*.{int(row.start_unix_s)}.*"):
        path.unlink()
    start = float(before.start_unix_s) + 3
    job = {"scheduler": "slurm", "job_id": "16", "restart_count": "2", "exclusive": False}
    HELP.write_record(
        study.record_dir / "16", row.nodes[0], start, "16", tags={"restart": "2"}, job=job, **fields
    )
    return start


def restarts(study: Any) -> dict[str, str]:
    rows = query(study, "SELECT attempt, value FROM tags WHERE key = 'restart' ORDER BY ALL")
    return {attempt: value for attempt, value in rows}


def test_a_clock_that_was_set_back_between_two_starts(study: Any) -> None:
    start = set_back(study)
    tell(study, "twice", "16.2", start_unix_s=start + 0.25)
    study.collect()
    assert restarts(study) == {"16.0": "0", "16.1": "1", "16.2": "2"}


def test_a_record_by_its_time_of_another_start(study: Any) -> None:
    """Nothing else is known of it: it is omitted, and reported."""
    set_back(study)
    study.collect()
    assert restarts(study) == {"16.0": "0", "16.1": "1"}
    reasons = [reason for _, reason in gaps(study, "16.1")]
    assert any("is of start 2 of the job, left out" in reason for reason in reasons), reasons


def test_a_clock_that_was_set_while_the_job_ran_is_told(study: Any) -> None:
    row = study.row("11")
    study.record(row, row.nodes[0], clock={"steps": 1, "step_s": -3600.0})
    study.collect()
    ((kind, reason),) = gaps(study)
    assert kind == "clock"
    assert f"the clock of {row.nodes[0]} was set once while the job ran, by -3600 s" in reason


def test_a_submitting_host_whose_clock_is_an_hour_ahead(study: Any) -> None:
    study.submitted_unix_s += 3600
    study.now_unix_s += 7200
    study.write_plan()
    study.collect()
    reasons = [r for (r,) in query(study, "SELECT reason FROM gaps WHERE kind = 'job'")]
    assert any("job 11," in r and "submitted 3" in r and "clock of the host" in r for r in reasons)


def test_a_result_counts_although_its_submission_was_recorded_too_late(study: Any) -> None:
    """sbatch took the jobs 95 s before that: the accounting's rows fit no submission."""
    study.collect()
    right = query(study, "SELECT run_id, state FROM runs WHERE state = 'completed' ORDER BY ALL")
    assert len(right) == 4
    study.submitted_unix_s += 96
    study.write_plan()
    study.collect()
    assert (
        query(study, "SELECT run_id, state FROM runs WHERE state = 'completed' ORDER BY ALL")
        == right
    )


# --- few runs, or none ------------------------------------------------------------------------


def plan_of(study: Any, keep: list[str]) -> None:
    path = study.dir / "plan.json"
    plan = json.loads(path.read_text(encoding="utf-8"))
    plan["runs"] = [run for run in plan["runs"] if run["run_id"] in keep]
    path.write_text(json.dumps(plan), encoding="utf-8")


def test_no_runs_at_all(study: Any) -> None:
    plan_of(study, [])
    done = study.collect()
    assert (done.states, done.attempts) == ({}, 0)
    summary = summarize(study.dir)
    assert summary.rows == []
    assert find_all(summary)[0].kind.code == "SY29"
    assert cli.main(["report", str(study.dir), "-o", str(study.dir / "r.html")]) == 0


def test_one_run(study: Any) -> None:
    plan_of(study, [run_id("twonodes")])
    study.collect()
    summary = summarize(study.dir)
    (row,) = [r for r in summary.rows if r.metric.is_primary]
    assert (row.n, row.interval.low, row.spread.sd) == (1, None, None)
    assert "SY04" in {finding.kind.code for finding in find_all(summary)}
    assert cli.main(["report", str(study.dir), "-o", str(study.dir / "r.html")]) == 0


def test_all_runs_failed(study: Any) -> None:
    for path in study.dir.glob("runs/*/*/result.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(document | {"state": "failed", "reason": "no"}), "utf-8")
    done = study.collect()
    assert "completed" not in done.states
    summary = summarize(study.dir)
    assert all(row.n == 0 and row.interval is None for row in summary.rows)
    assert "SY01" in {finding.kind.code for finding in find_all(summary)}
    assert cli.main(["report", str(study.dir), "-o", str(study.dir / "r.html")]) == 0


# --- figures that are none --------------------------------------------------------------------


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_a_record_with_a_figure_that_is_none(study: Any, word: str) -> None:
    row = study.row("11")
    (path,) = (study.record_dir / "11").glob(f"{row.nodes[0]}.*.json")
    text = path.read_text(encoding="utf-8").replace('"cpu_s": 5.0', f'"cpu_s": {word}')
    path.write_text(text, encoding="utf-8")
    study.collect()
    ((kind, reason),) = gaps(study)
    assert kind == "record" and f"{word} is no number" in reason


def test_a_result_with_a_figure_that_is_none(study: Any) -> None:
    path = study.dir / "runs" / run_id("twonodes") / "11.0" / "result.json"
    text = path.read_text(encoding="utf-8").replace('"elapsed_s": 0.5', '"elapsed_s": NaN')
    path.write_text(text, encoding="utf-8")
    study.collect()
    ((kind, reason),) = gaps(study)
    assert kind == "result" and "NaN is no number" in reason


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_benchmark_that_prints_no_number(
    study: Any, monkeypatch: pytest.MonkeyPatch, value: float
) -> None:
    real = outputs.read_figures

    def odd(run: Any, attempt: Any, *more: Any) -> Any:
        for figure in real(run, attempt, *more):
            is_odd = attempt.attempt == "11.0" and figure.metric == "seconds"
            yield dataclasses.replace(figure, value=value) if is_odd else figure

    monkeypatch.setattr(outputs, "read_figures", odd)
    study.collect()
    kept = query(study, "SELECT DISTINCT value FROM results WHERE attempt = '11.0' "
                        "AND metric = 'seconds'")  # fmt: skip
    assert str(kept[0][0]) == str(value)
    summary = summarize(study.dir)
    assert "SY19" in {finding.kind.code for finding in find_all(summary)}
    assert all(abs(v) < 1e12 for row in summary.rows for v in row.values)


def test_samples_with_figures_that_are_none(study: Any) -> None:
    row = study.row("11")
    (path,) = (study.record_dir / "11").glob(f"{row.nodes[0]}.*.csv")
    lines = path.read_text(encoding="utf-8").splitlines()
    cells = lines[2].split(",")
    cells[0], cells[2] = "nan", "inf"
    path.write_text("\n".join([*lines[:2], ",".join(cells), *lines[3:]]) + "\n", encoding="utf-8")
    study.collect()
    days = sorted(p.name for p in (study.dir / "parquet" / "samples").iterdir())
    assert days == ["day=2026-11-21", "day=unknown"]
    ((agrees,),) = query(
        study,
        f"SELECT agrees FROM checks WHERE attempt = '11.0' AND node = '{row.nodes[0]}' "
        "AND quantity = 'cpu_s' AND source_b = 'records'",
    )
    assert agrees is False


def test_a_benchmark_whose_unit_changed(study: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from steelyard.jobscripts.filesystem import parse

    real = parse.parse

    def other_unit(folder: Path, client: int, parameters: Any) -> Any:
        found = real(folder, client, parameters)
        if folder.name != "11.0":
            return found
        return [r._replace(unit="ms") if hasattr(r, "_replace") else
                dataclasses.replace(r, unit="ms") for r in found]  # fmt: skip

    monkeypatch.setattr(parse, "parse", other_unit)
    study.collect()
    ((kind, reason),) = gaps(study)
    assert kind == "output" and "in ms, which is not described" in reason
    ((state,),) = query(study, f"SELECT state FROM runs WHERE run_id = '{run_id('twonodes')}'")
    assert state == "failed"
    assert query(study, "SELECT * FROM results WHERE attempt = '11.0'") == []


def test_a_record_cut_short_before_any_process_was_seen_has_no_largest_memory(study: Any) -> None:
    row = study.row("11")
    study.record(row, row.nodes[1], complete=False, incomplete_reason="killed")
    (path,) = (study.record_dir / "11").glob(f"{row.nodes[1]}.*.csv")
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    column = header.split(",").index("memory_bytes")
    cells = [line.split(",") for line in lines]
    empty = [",".join([*c[:column], "0", *c[column + 1 :]]) for c in cells]
    path.write_text("\n".join([header, *empty]) + "\n", encoding="utf-8")
    study.collect()
    assert query(
        study,
        "SELECT max_memory_bytes, samples FROM records "
        f"WHERE attempt = '11.0' AND node = '{row.nodes[1]}'",
    ) == [(None, 3)]
