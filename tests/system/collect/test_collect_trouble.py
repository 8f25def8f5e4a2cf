"""collect() when things are missing, cut short, broken or killed: a reason, and nothing lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.collect import study as HELP

from steelyard.analysis.base.errors import MissingError, UsageError
from steelyard.analysis.job.job_lookup import look_up
from steelyard.analysis.sources import sacct

query, run_id, gap_kinds = HELP.query, HELP.run_id, HELP.gap_kinds
# Missing in the recorded jobs on a day without failures: failed jobs have no files.
USUAL = {"4.0", "5.0", "6.0", "13.0", "14.0", "15.0", "4000_0.0"}


@pytest.fixture
def study(tmp_path: Path) -> Any:
    study = HELP.Study(tmp_path)
    study.everything()
    return study


def gaps(study: Any, attempt: str) -> list[tuple[str, str]]:
    return query(study, f"SELECT kind, reason FROM gaps WHERE attempt = '{attempt}' ORDER BY ALL")


def run_state(study: Any, name: str) -> tuple[str, str]:
    ((state, reason),) = query(
        study, f"SELECT state, reason FROM runs WHERE run_id = '{run_id(name)}'"
    )
    return state, reason


def test_without_trouble_only_the_failed_jobs_lack_something(study: Any) -> None:
    done = study.collect()
    assert {gap.attempt for gap in done.gaps if gap.attempt} <= USUAL


def test_output_that_is_not_understood_fails_the_run_and_is_kept(study: Any) -> None:
    out = study.dir / "runs" / run_id("twonodes") / "11.0" / "out.0"
    out.write_text("Segmentation fault\n", encoding="utf-8")
    study.collect()
    state, reason = run_state(study, "twonodes")
    assert state == "failed" and reason.startswith("the output is not understood: out.0")
    assert [kind for kind, _ in gaps(study, "11.0")] == ["output"]
    assert out.read_text(encoding="utf-8") == "Segmentation fault\n"


def test_a_client_without_output_fails_the_run(study: Any) -> None:
    path = study.dir / "runs" / run_id("twonodes") / "11.0" / "result.json"
    document = json.loads(path.read_text(encoding="utf-8")) | {"clients": 2}
    path.write_text(json.dumps(document), encoding="utf-8")
    study.collect()
    state, reason = run_state(study, "twonodes")
    assert state == "failed" and "out.1" in reason
    assert query(study, "SELECT * FROM results WHERE attempt = '11.0'") == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "left no result.json"),
        ("", "is not JSON"),
        ('{"format": "steelyard-run", "version": 2}', "version 2"),
        ('{"format": "other"}', "expected a document of format 'steelyard-run'"),
    ],
)
def test_a_completed_job_without_a_usable_result_has_failed(
    study: Any, text: str | None, words: str
) -> None:
    path = study.dir / "runs" / run_id("twonodes") / "11.0" / "result.json"
    path.unlink() if text is None else path.write_text(text, encoding="utf-8")
    study.collect()
    state, reason = run_state(study, "twonodes")
    assert state == "failed" and words in reason
    assert [kind for kind, _ in gaps(study, "11.0")] == ["result"]


def test_a_completed_job_whose_run_did_not_end_has_failed(study: Any) -> None:
    path = study.dir / "runs" / run_id("twonodes") / "11.0" / "result.json"
    document = json.loads(path.read_text(encoding="utf-8")) | {"state": "started"}
    path.write_text(json.dumps(document), encoding="utf-8")
    study.collect()
    assert run_state(study, "twonodes")[0] == "failed"


def test_a_record_cut_short_keeps_its_samples_and_stays_out_of_the_means(study: Any) -> None:
    row = study.row("11")
    nulls = {"cpu": {"cpu_s": None}, "io": {"rchar_bytes": None}, "elapsed_s": None}
    study.record(
        row, row.nodes[1], complete=False, incomplete_reason="the job is still running", **nulls
    )
    study.collect()
    ((complete, cpu, rchar, memory, samples, elapsed, energy),) = query(
        study,
        "SELECT complete, cpu_s, rchar_bytes, max_memory_bytes, samples, elapsed_s, energy_j "
        f"FROM records WHERE attempt = '11.0' AND node = '{row.nodes[1]}'",
    )
    # The last sample's, of memory the largest.
    assert (complete, cpu, rchar, memory) == (False, 5.0, 100, 3000)
    assert (samples, elapsed, energy) == (3, 20.0, None)
    ((kind, reason),) = gaps(study, "11.0")
    assert kind == "incomplete_record" and "was cut short: the job is still running" in reason
    ((value,),) = query(
        study,
        f"SELECT value FROM measurements WHERE run_id = '{run_id('twonodes')}' "
        "AND metric = 'cpu_s'",
    )
    assert value is None


@pytest.mark.parametrize(("lacks", "rx_bytes"), [("processes", 1000.0), ("job", None)])
def test_what_a_node_counts_is_whole_where_only_processes_were_missed(
    study: Any, lacks: str, rx_bytes: float | None
) -> None:
    row = study.row("11")
    alone = {"job": {"scheduler": "slurm", "job_id": "11", "exclusive": True}}
    study.record(row, row.nodes[0], **alone)
    study.record(row, row.nodes[1], complete=False, incomplete_of=lacks, **alone)
    study.collect()
    values = query(
        study,
        f"SELECT metric, value FROM measurements WHERE run_id = '{run_id('twonodes')}' "
        "AND metric IN ('cpu_s', 'rx_bytes') ORDER BY metric",
    )
    assert values == [("cpu_s", None), ("rx_bytes", rx_bytes)]
    view = look_up("11", [study.record_dir], study.accounting)
    assert (view.total("cpu_s"), view.total("rx_bytes")) == (None, rx_bytes)


def test_the_last_line_of_samples_cut_short_is_left_out(study: Any) -> None:
    row = study.row("11")
    (path,) = (study.record_dir / "11").glob(f"{row.nodes[0]}.*.csv")
    text = path.read_text(encoding="utf-8")
    path.write_text(text[:-5], encoding="utf-8")
    study.collect()
    ((kind, reason),) = gaps(study, "11.0")
    assert kind == "cut_samples" and path.name in reason
    count = f"SELECT count(*) FROM samples WHERE attempt = '11.0' AND node = '{row.nodes[0]}'"
    assert query(study, count) == [(2,)]
    # The whole file comes later, from a node that was slow: it replaces the part.
    path.write_text(text, encoding="utf-8")
    study.collect()
    assert query(study, count) == [(3,)] and gaps(study, "11.0") == []


def test_samples_that_are_not_there_are_told(study: Any) -> None:
    row = study.row("11")
    (path,) = (study.record_dir / "11").glob(f"{row.nodes[0]}.*.csv")
    path.unlink()
    study.collect()
    ((kind, reason),) = gaps(study, "11.0")
    assert kind == "samples" and path.name in reason


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"version": 2}, "record_version", "this Steelyard knows version 1"),
        ({"format": "x"}, "record", "expected a document of format"),
        ({"energy": {"energy_j": "lots"}}, "record", "'energy.energy_j' is 'lots'"),
        ({"cpu": {"cpu_s": True}}, "record", "'cpu.cpu_s' is True"),
        ({"complete": None}, "record", "'node' or 'complete' is missing"),
    ],
)
def test_a_record_that_cannot_be_used_is_told(
    study: Any, change: dict[str, Any], kind: str, words: str
) -> None:
    row = study.row("11")
    study.record(row, row.nodes[0], **change)
    study.collect()
    ((found, reason),) = gaps(study, "11.0")
    assert found == kind and words in reason


def test_without_any_record_folder_every_node_is_a_gap(study: Any, tmp_path: Path) -> None:
    done = study.collect(record_dirs=[tmp_path / "nowhere"])
    mine = [gap for gap in done.gaps if gap.attempt == "11.0"]
    assert [gap.kind for gap in mine] == ["record", "record"]
    assert "nowhere does not exist here" in mine[0].reason
    assert run_state(study, "twonodes")[0] == "completed"


def test_records_that_cannot_be_copied_are_told(study: Any) -> None:
    (study.dir / "records").mkdir()
    (study.dir / "records" / "11").write_text("in the way", encoding="utf-8")
    study.collect()
    reasons = [reason for kind, reason in gaps(study, "11.0") if kind == "record"]
    assert any("cannot be copied: File exists" in reason for reason in reasons)


def test_two_records_of_a_job_on_a_node(study: Any) -> None:
    row = study.row("11")
    HELP.write_record(
        study.record_dir / "11", row.nodes[0], row.start_unix_s + 3, "11", complete=False
    )
    study.collect()
    assert [kind for kind, _ in gaps(study, "11.0")] == ["record"]
    rows = query(
        study, f"SELECT complete FROM records WHERE attempt = '11.0' AND node = '{row.nodes[0]}'"
    )
    assert rows == [(True,)]


# --- the accounting ---------------------------------------------------------------------------


def test_without_accounting_the_folders_speak(study: Any) -> None:
    study.accounting.is_away = True
    done = study.collect()
    assert run_state(study, "twonodes")[0] == "completed"
    assert query(study, "SELECT count(*) FROM results WHERE attempt = '11.0'") == [(9,)]
    assert query(study, "SELECT count(*) FROM records WHERE attempt = '11.0'") == [(2,)]
    state, reason = run_state(study, "held")
    assert state == "pending" and "could not be asked" in reason
    assert gap_kinds(done.gaps).count("accounting") == 1
    assert done.states["completed"] == 4


def test_accounting_that_comes_back_completes_the_picture(study: Any, tmp_path: Path) -> None:
    study.accounting.is_away = True
    study.collect()
    study.accounting.is_away = False
    study.collect()
    assert run_state(study, "held")[0] == "cancelled"
    assert query(study, "SELECT count(*) FROM gaps WHERE kind = 'accounting'") == [(0,)]
    keys = query(study, "SELECT run_id, attempt FROM attempts GROUP BY ALL HAVING count(*) > 1")
    assert keys == []


def test_accounting_that_is_gone_takes_nothing_with_it(study: Any) -> None:
    study.collect()
    before = query(study, "SELECT * EXCLUDE stamp FROM attempts ORDER BY ALL")
    study.accounting.is_away = True
    study.collect()
    after = query(study, "SELECT * EXCLUDE stamp FROM attempts ORDER BY ALL")
    assert [r for r in after if r[1] != "4000_0.0"] == [r for r in before if r[1] != "4000_0.0"]


def test_no_slurm_at_all(study: Any, tmp_path: Path) -> None:
    done = study.collect(accounting={"slurm": sacct.Sacct(str(tmp_path / "no-sacct"))})
    assert any("slurm-client" in gap.reason for gap in done.gaps)
    assert done.states["completed"] == 4


# --- files of the study -----------------------------------------------------------------------


def test_a_folder_without_a_plan_is_no_study(tmp_path: Path) -> None:
    study = HELP.Study(tmp_path)
    (study.dir / "plan.json").unlink()
    with pytest.raises(MissingError, match=r"plan\.json is missing"):
        study.collect()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON"),
        ('{"format": "steelyard-plan", "version": 3}', "version 3"),
        ('{"format": "steelyard-plan", "version": 1, "study": {}, "runs": [{}]}', "run_id"),
    ],
)
def test_a_plan_that_is_not_understood(tmp_path: Path, text: str, words: str) -> None:
    study = HELP.Study(tmp_path)
    (study.dir / "plan.json").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=words):
        study.collect()


def test_a_submission_line_cut_short_is_left_out(study: Any) -> None:
    path = study.dir / "submissions.jsonl"
    path.write_text(path.read_text(encoding="utf-8") + '{"submission_id": "la', encoding="utf-8")
    study.collect()
    assert run_state(study, "twonodes")[0] == "completed"


# --- kills and full disks ---------------------------------------------------------------------


def test_every_phase_is_watched_to_its_end(study: Any) -> None:
    seen: dict[str, list[tuple[int, int]]] = {}
    study.collect(progress=lambda phase, done, of: seen.setdefault(phase, []).append((done, of)))
    assert list(seen) == ["accounting", "run folders", "records", "samples", "outputs", "Parquet"]
    for steps in seen.values():
        assert steps == sorted(steps) and steps[-1][0] == steps[-1][1] > 0
