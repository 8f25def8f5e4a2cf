"""A collect that leaves alone what has not changed gives the database that one from the start
gives."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.collect import study as HELP

from steelyard.analysis.base import file_changes
from steelyard.analysis.collect import record_import, run_output_import, tables, unchanged_attempts
from steelyard.analysis.sources import records
from steelyard.analysis.store import export

ARRAY, TWO = HELP.run_id("array"), HELP.run_id("twonodes")
WHOLE = 3  # complete attempts: two tasks, two nodes. The requeued job's are read


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Collected twice, so that all that can be is settled."""
    monkeypatch.setattr(file_changes, "RACE_NS", 0)
    made = HELP.Study(tmp_path)
    made.everything()
    made.now_unix_s += 3600
    made.collect()
    made.collect()
    return made


def folder_of(study: Any, run: str) -> Path:
    """Return the folder of the run's only attempt."""
    (found,) = (study.dir / "runs" / run).iterdir()
    return Path(found)


def record_of(study: Any, run: str) -> Path:
    """One where the node has left it."""
    job = folder_of(study, run).name.partition(".")[0]
    return min(Path(study.record_dir / job).glob("*.json"))


def edit(path: Path, change: Callable[[Any], object]) -> None:
    """A JSON file, to be written as a whole."""
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def nothing(study: Any) -> None:
    """Change nothing."""


def a_tag(study: Any) -> None:
    (folder_of(study, ARRAY) / "client.0").write_text("ready n1 0\n")
    (folder_of(study, ARRAY) / "tags.0").write_text("a=b\n")


def another_output(study: Any) -> None:
    """The same size and the same times but for the inode's own."""
    path = folder_of(study, ARRAY) / "out.0"
    times, text = path.stat(), path.read_text()
    digit = next(place for place, letter in enumerate(text) if letter in "3456789")
    path.write_text(f"{text[:digit]}{int(text[digit]) - 1}{text[digit + 1 :]}")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert path.stat().st_size == times.st_size


def a_link(study: Any) -> None:
    path = folder_of(study, ARRAY) / "out.0"
    path.rename(study.dir.parent / "elsewhere")
    path.symlink_to(study.dir.parent / "elsewhere")


def behind_the_link(study: Any) -> None:
    (study.dir.parent / "elsewhere").write_text("nothing of note\n")


def no_output(study: Any) -> None:
    (folder_of(study, TWO) / "out.0").write_text("nothing of note\n")


def another_result(study: Any) -> None:
    edit(folder_of(study, TWO) / "result.json", lambda d: d.update(elapsed_s=0.75))


def a_failed_run(study: Any) -> None:
    edit(folder_of(study, TWO) / "result.json", lambda d: d.update(state="failed", reason="no"))


def another_record(study: Any) -> None:
    edit(record_of(study, TWO), lambda d: d["cpu"].update(cpu_s=6.5))


def a_record_cut_short(study: Any) -> None:
    edit(record_of(study, TWO), lambda d: d.update(complete=False, incomplete_reason="killed"))


def a_condition_that_did_not_hold(study: Any) -> None:
    found = {"valid": False, "invalid_reason": "no", "requested": "delay=1ms", "undone": True}
    edit(record_of(study, ARRAY), lambda d: d.update(network_conditions=found))


def no_records(study: Any) -> None:
    path = record_of(study, TWO)
    shutil.rmtree(path.parent)
    shutil.rmtree(study.dir / "records" / path.parent.name)


def no_folder(study: Any) -> None:
    shutil.rmtree(study.dir / "runs" / ARRAY)


def fewer_samples(study: Any) -> None:
    path = record_of(study, ARRAY).with_suffix(".csv")
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


def samples_lost(study: Any) -> None:
    for part in study.dir.glob("parquet/samples/*/*.parquet"):
        part.unlink()


def another_plan(study: Any) -> None:
    edit(study.dir / "plan.json", lambda d: d["runs"][0].update(condition_label="clients=3"))


def more_planned(study: Any) -> None:
    study.write_plan(planned=3)


def fewer_planned(study: Any) -> None:
    edit(study.dir / "plan.json", lambda d: d["runs"].pop(0))


def a_table_lost(study: Any) -> None:
    (study.dir / "parquet" / "records.parquet").unlink()


# One after another to the same study, so that what destroys comes last.
CHANGES = (
    nothing, a_tag, another_output, another_result, another_record, a_condition_that_did_not_hold,
    fewer_samples, samples_lost, a_table_lost, another_plan, more_planned, a_record_cut_short,
    a_failed_run, no_output, a_link, behind_the_link, no_folder, fewer_planned, no_records,
)  # fmt: skip


def anew(study: Any) -> dict[str, list[str]]:
    """What a collect without any earlier one makes of it."""
    (study.dir / "study.duckdb").rename(study.dir / "kept.duckdb")
    (study.dir / "parquet").rename(study.dir / "kept.parquet")
    study.collect()
    found = HELP.content(study)
    shutil.rmtree(study.dir / "parquet")
    (study.dir / "kept.duckdb").replace(study.dir / "study.duckdb")
    (study.dir / "kept.parquet").rename(study.dir / "parquet")
    return found


def exported(study: Any) -> dict[str, list[str]]:
    """The Parquet files, as content() has the tables."""
    found = {}
    for table in export.TABLES:
        columns = {"meta": "EXCLUDE collected_unix_s", "attempts": "EXCLUDE stamp"}.get(table, "")
        path = study.dir / "parquet" / f"{table}.parquet"
        rows = HELP.one_engine().execute(f"SELECT * {columns} FROM '{path}'").fetchall()
        found[table] = sorted(map(repr, rows))
    return found


def test_whatever_changes_it_is_as_collected_from_the_start(study: Any) -> None:
    for change in CHANGES:
        change(study)
        study.collect()
        found, files = HELP.content(study), exported(study)
        fresh = anew(study)
        if change in (fewer_planned, no_records):  # samples that were read once stay
            fresh |= {table: found[table] for table in ("samples", "sources")}
        assert found == fresh, change.__name__
        del files["sample_parts"]  # content() has the samples for it
        assert files == {table: found[table] for table in files}, change.__name__


def test_only_what_changed_is_read(study: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    read: dict[str, list[str]] = {"records": [], "outputs": []}

    def record(path: Path) -> Any:
        read["records"].append(path.parent.name)
        return read_record(path)

    def output(run: Any, attempt: Any) -> Any:
        read["outputs"].append(attempt.run_id)
        return read_output(run, attempt)

    read_record, read_output = records.read_record, run_output_import.read_output
    monkeypatch.setattr(record_import, "read_record", record)
    monkeypatch.setattr("steelyard.analysis.collect.collect.read_output", output)
    another_record(study)
    study.collect()
    job = record_of(study, TWO).parent.name
    assert read["outputs"].count(TWO) == 1
    assert sorted({*read["records"]} - {"16"}) == [job], "16 was started more than once"
    assert not {ARRAY} & {*read["outputs"]}


def test_what_was_linked_into_the_study_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One more link changes the times of the file that the node left."""
    monkeypatch.setattr(file_changes, "RACE_NS", 0)
    made = HELP.Study(tmp_path)
    made.everything()
    made.now_unix_s += 3600
    for path in Path(made.record_dir).rglob("*.*"):
        path.chmod(0o440)
    made.collect()
    source = record_of(made, TWO).with_suffix(".csv")
    assert source.samefile(made.dir / "records" / source.parent.name / source.name)
    times = record_of(made, TWO).stat()
    read: list[str] = []

    def record(path: Path) -> Any:
        read.append(path.parent.name)
        return read_record(path)

    read_record = records.read_record
    monkeypatch.setattr(record_import, "read_record", record)
    made.collect()
    assert {*read} == {"16"}, "it was started more than once"
    record_of(made, TWO).touch()  # any look at the record's inode's own time tells
    os.utime(record_of(made, TWO), ns=(times.st_atime_ns, times.st_mtime_ns))
    made.collect()
    assert record_of(made, TWO).parent.name in read
    assert HELP.query(made, "SELECT count(stamp) FROM attempts") == [(WHOLE,)]


def test_another_program_reads_all_of_it_anew(study: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def stamps() -> list[str]:
        rows = HELP.query(study, "SELECT stamp FROM attempts WHERE stamp IS NOT NULL ORDER BY ALL")
        return [stamp for (stamp,) in rows]

    before = stamps()
    assert len(before) == WHOLE
    monkeypatch.setattr(file_changes, "digest_program", lambda: "another")
    study.collect()
    assert len(stamps()) == len(before)
    assert not {*stamps()} & {*before}


def test_what_was_changed_a_moment_ago_is_read_again(
    study: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second change within the clock's grain would leave the same times."""
    monkeypatch.setattr(file_changes, "RACE_NS", 10**15)
    a_tag(study)
    study.collect()
    assert HELP.query(study, "SELECT count(stamp) FROM attempts") == [(0,)]


@pytest.mark.parametrize(("waiting", "by_threads"), [(0.0, True), (float("inf"), False)])
def test_threads_look_only_where_files_are_waited_for(
    study: Any, monkeypatch: pytest.MonkeyPatch, waiting: float, by_threads: bool
) -> None:
    looked: list[str] = []

    def noted(stamps: unchanged_attempts.Stamps, attempts: Any) -> list[str | None]:
        looked.extend(threading.current_thread().name for _ in attempts)
        return look(stamps, attempts)

    look = unchanged_attempts.Stamps._compute_stamps
    monkeypatch.setattr(unchanged_attempts.Stamps, "_compute_stamps", noted)
    monkeypatch.setattr(unchanged_attempts, "WAITING", waiting)
    monkeypatch.setattr(unchanged_attempts, "LOOKS_AT_ONCE", 1)
    before = HELP.query(study, "SELECT * FROM attempts ORDER BY ALL")
    study.collect()
    assert HELP.query(study, "SELECT * FROM attempts ORDER BY ALL") == before
    main = threading.main_thread().name
    assert len(looked) == WHOLE and main in looked
    assert ({*looked} != {main}) == by_threads


# --- a study of which nothing at all is read ------------------------------------------------------


@pytest.fixture
def whole(study: Any) -> Any:
    """All its runs, one on two nodes, are settled."""
    study.write_plan(("twonodes",), planned=0)
    (study.dir / "study.duckdb").unlink()
    shutil.rmtree(study.dir / "parquet")
    study.collect()
    study.collect()
    return study


def one_more_planned(study: Any) -> None:
    more = study.planned("filesystem-ffffffff-001", 99, "clients=9")
    edit(study.dir / "plan.json", lambda d: d["runs"].append(more))


def one_less_planned(study: Any) -> None:
    edit(study.dir / "plan.json", lambda d: d["runs"].pop())


def one_more_attempt(study: Any) -> None:
    shutil.copytree(folder_of(study, TWO), study.dir / "runs" / TWO / "11.1")


def one_less_attempt(study: Any) -> None:
    shutil.rmtree(study.dir / "runs" / TWO / "11.1")


def no_run(study: Any) -> None:
    shutil.rmtree(study.dir / "runs" / TWO)


CHANGES_OF_WHOLE = (
    another_result, another_record, samples_lost, a_table_lost, another_plan, one_more_planned,
    one_less_planned, one_more_attempt, one_less_attempt, a_record_cut_short, no_output, no_records,
    no_run,
)  # fmt: skip


def test_where_all_is_settled_no_run_is_written_and_each_change_is_seen(
    whole: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrote: list[str] = []
    for table in ("write_attempts", "write_runs", "write_records"):
        write = getattr(tables, table)

        def noted(*given: Any, table: str = table, write: Any = write) -> Any:
            wrote.append(table)
            return write(*given)

        monkeypatch.setattr(tables, table, noted)
    whole.now_unix_s += 60
    done = whole.collect()
    assert (done.states, done.attempts, done.records, wrote) == ({"completed": 1}, 1, 2, [])
    assert HELP.query(whole, "SELECT collected_unix_s FROM meta") == [(whole.now_unix_s,)]
    assert export.read_mark(whole.dir / "parquet") == repr(whole.now_unix_s)
    for change in CHANGES_OF_WHOLE:
        change(whole)
        fresh = anew(whole)
        for _ in range(2):  # with the change, and with nothing that changed since
            done = whole.collect()
            found, files = HELP.content(whole), exported(whole)
            if change in (no_records, no_run):  # samples that were read once stay
                fresh |= {table: found[table] for table in ("samples", "sources")}
            assert found == fresh, change.__name__
            del files["sample_parts"]  # content() has the samples for it
            assert files == {table: found[table] for table in files}, change.__name__
            states = HELP.query(whole, "SELECT state, count(*) FROM runs GROUP BY state")
            assert dict(states) == dict(done.states), change.__name__
