"""One odd file is a gap with a name, and the rest is collected: never a traceback, never a hang."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.collect import study as HELP

from steelyard.analysis.base.errors import UsageError
from steelyard.analysis.job import job_lookup
from steelyard.analysis.summary import parquet_summary
from steelyard.jobscripts.registry import Benchmark
from steelyard.wrappers.submit.run_state import StateCache

query, run_id = HELP.query, HELP.run_id
HANG_S = 120  # far more than any of these takes; a hang has no end at all


@pytest.fixture(autouse=True)
def no_hang() -> Iterator[None]:
    """What waits for ever fails: by one signal, for a second could come to pytest itself."""

    def give_up(*_: object) -> None:
        pytest.fail(f"not done after {HANG_S} s")

    assert threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, HANG_S)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def study(tmp_path: Path) -> Any:
    study = HELP.Study(tmp_path)
    study.everything()
    return study


def folder_of(study: Any, name: str, task: int = 0) -> Path:
    """Return the folder of the last attempt, which has the output."""
    return Path(max((study.dir / "runs" / run_id(name, task)).iterdir()))


def changed(path: Path, **fields: object) -> None:
    """Other values in a JSON file; `"@1e999"` is written as the number."""
    document = json.loads(path.read_text(encoding="utf-8")) | fields
    path.write_text(re.sub('"@([^"]*)"', r"\1", json.dumps(document)), encoding="utf-8")


def gaps(study: Any, column: str) -> dict[str, tuple[str, str]]:
    """What and why, by attempt or node."""
    rows = query(study, f"SELECT {column}, kind, reason FROM gaps WHERE {column} IS NOT NULL")
    return {row[0]: row[1:] for row in rows}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"io": {"rchar_bytes": 2**63}}, "'io.rchar_bytes' is 9223372036854775808"),
    ({"io": {"wchar_bytes": 2**64 - 5}}, "'io.wchar_bytes' is 18446744073709551611"),
    ({"sampler": {"samples": 10**30}}, "'sampler.samples' is 1000"),
    ({"start_unix_s": 10**400}, "'start_unix_s' is 1000"),
    ({"energy": {"energy_j": "@1e999"}}, "1e999 is no number that can be stored"),
    ({"new": {"in a": ["version", "@-1e999"]}}, "-1e999 is no number that can be stored"),
    ({"new": "@" + "9" * 5000}, "is not JSON"),
    ({"tags": 5}, "'tags' is 5"),
    ({"tags": {"k": "x" * 9_000_000}}, "are more than the 8388608 looked at"),
    ({"missing": []}, "'missing' is []"),
    ({"network_conditions": 5}, "'network_conditions' is 5"),
    ({"network_conditions": {"devices": 5}}, "'network_conditions.devices' is 5"),
    ({"network_conditions": {"requested": 5}}, "'network_conditions.requested' is 5"),
]
# Odd, but where anything may stand.
TAKEN: list[dict[str, Any]] = [
    {"new": 10**300},
    {"new": [2**64, -(2**63) - 1, 1e308]},
    {"start_unix_s": -1e300},
    {"tags": {"a": {"b": 1}, "\ud800": "\0"}},
    {"missing": {"io": 7}},
    {"probe": 5},
    {"samples_file": "\0"},
    {"samples_file": "x" * 5000},
    {"network_conditions": {"devices": [5, {"device": {"a": 1}}], "notes": [7], "rtt": 3}},
    {"network_conditions": {"requested": "loss=gemodel:x"}},
    {"network_conditions": {"requested": "limit=" + "9" * 5000}},
    {"network_conditions": {"requested": "to=,loss=gemodel:1%:1%:1%:1%:1%:1%"}},
]


def test_records_with_odd_values_are_gaps_and_the_rest_is_collected(study: Any) -> None:
    row = study.row("11")
    for number, fields in enumerate([fields for fields, _ in REFUSED] + TAKEN):
        node = f"odd{number}"
        changed(study.record(row, node), **{"node": node} | fields)
    study.collect()
    told = gaps(study, "node")
    for number, (_, words) in enumerate(REFUSED):
        kind, reason = told[f"odd{number}"]
        assert kind == "record" and words in reason and f"odd{number}." in reason
    nodes = query(study, "SELECT node FROM records WHERE attempt = '11.0' ORDER BY ALL")
    taken = [f"odd{len(REFUSED) + number}" for number in range(len(TAKEN))]
    assert [node for (node,) in nodes] == sorted([*row.nodes, *taken])


RESULTS: list[tuple[dict[str, Any], str]] = [
    ({"clients": 10**12}, "'clients' is 1000000000000"),
    ({"clients": "@1e999"}, "1e999 is no number that can be stored"),
    ({"exit_codes": [2**70]}, "'exit_codes' is 1180591620717411303424"),
    ({"start_unix_s": 10**400}, "'start_unix_s' is 1000"),
    ({"elapsed_s": "@1e999"}, "1e999 is no number that can be stored"),
    ({"reason": "x" * 20_000_000}, "are more than the 16777216 looked at"),
]


def test_results_with_odd_values_are_gaps_and_the_rest_is_collected(study: Any) -> None:
    run = folder_of(study, "twonodes").parent
    for number, (fields, _) in enumerate(RESULTS):
        shutil.copytree(run / "11.0", run / f"{900 + number}.0")
        changed(run / f"{900 + number}.0" / "result.json", **fields)
    study.collect()
    told = gaps(study, "attempt")
    for number, (_, words) in enumerate(RESULTS):
        kind, reason = told[f"{900 + number}.0"]
        assert kind == "result" and words in reason
    assert query(study, "SELECT count(*) FROM results WHERE attempt = '11.0'") == [(9,)]


STUMBLES = [TypeError, AttributeError, RecursionError]


def test_parsers_that_stumble(study: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [folder_of(study, "array", 0), folder_of(study, "array", 3)]
    errors = dict(
        zip([f.name for f in (*folders, folder_of(study, "twice"))], STUMBLES, strict=True)
    )
    real = Benchmark.parse

    def parse(self: Benchmark, folder: Path, *rest: Any) -> Any:
        if folder.name in errors:
            raise errors[folder.name]("'NoneType' object is not iterable")
        return real(self, folder, *rest)

    monkeypatch.setattr(Benchmark, "parse", parse)
    study.collect()
    told = gaps(study, "attempt")
    for attempt, error in errors.items():
        kind, reason = told[attempt]
        assert kind == "output" and f"{error.__name__}: " in reason
    assert query(study, "SELECT count(*) FROM results WHERE attempt = '11.0'") == [(9,)]


def fifo(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


def terabyte(path: Path) -> None:
    with path.open("ab") as file:
        file.truncate(1 << 40)


RUNS = [("twice",), ("array", 0), ("array", 3)]
ODD: list[Callable[[Path], None]] = [fifo, endless, terabyte]


@pytest.mark.parametrize("make", ODD)
def test_files_that_are_none_are_gaps_and_the_rest_is_collected(
    study: Any, make: Callable[[Path], None]
) -> None:
    twice, spared, without = (folder_of(study, *run) for run in RUNS)
    make(twice / "result.json")
    for name in ("err.0", "tags.0", "environment.0", "client.0", "job.out", "srun.err"):
        make(spared / name)
    make(without / "out.0")
    row = study.row("11")
    for suffix in (".json", ".csv"):
        path = study.record(row, f"odd{suffix}")
        changed(path, node=f"odd{suffix}")
        make(path.with_suffix(suffix))
    study.collect()
    told = gaps(study, "attempt")
    assert told[twice.name][0] == "result" and told[without.name][0] == "output"
    assert query(study, f"SELECT count(*) FROM results WHERE attempt = '{spared.name}'") == [(9,)]
    names = query(study, "SELECT node FROM records WHERE attempt = '11.0' ORDER BY ALL")
    assert [name for (name,) in names] == sorted([*row.nodes, "odd.csv"])
    left_out = {path.name for path in (study.record_dir / "11").iterdir()} - {
        path.name for path in (study.dir / "records" / "11").iterdir()
    }
    assert {Path(name).suffix for name in left_out} == {".json", ".csv"}


@pytest.mark.parametrize("make", ODD)
@pytest.mark.parametrize("suffix", [".json", ".csv"])
def test_show_does_not_wait_for_a_file_that_is_none(
    study: Any, make: Callable[[Path], None], suffix: str
) -> None:
    row = study.row("11")
    path = study.record(row, row.nodes[1], complete=False, incomplete_reason="killed")
    make(path.with_suffix(suffix))
    view = job_lookup.look_up("11", [study.record_dir], study.accounting)
    assert len(view.nodes) == (1 if suffix == ".json" else 2)
    assert any(row.nodes[1] in words for words in view.missing)


@pytest.mark.parametrize("make", ODD)
def test_status_does_not_wait_for_a_file_that_is_none(
    study: Any, make: Callable[[Path], None]
) -> None:
    make(folder_of(study, "twonodes") / "result.json")
    with StateCache(study.dir) as looks:
        assert looks.last_attempt(run_id("twonodes")).text("state") is None


@pytest.mark.parametrize("make", [fifo, endless])
def test_exported_files_that_are_none_are_made_anew(
    study: Any, make: Callable[[Path], None]
) -> None:
    study.collect()
    lines = parquet_summary.summarize(study.dir, "duckdb")
    (part, *_) = sorted((study.dir / "parquet" / "samples").glob("*/*.parquet"))
    make(part)
    with pytest.raises(UsageError, match="is no whole Parquet file"):
        parquet_summary.summarize(study.dir, "duckdb")
    study.collect()
    assert parquet_summary.summarize(study.dir, "duckdb") == lines
    make(study.dir / "parquet" / "exported")
    with pytest.raises(UsageError, match="is not whole"):
        parquet_summary.summarize(study.dir, "duckdb")
    make(study.dir / "study.duckdb")
    with pytest.raises(UsageError, match="is no regular file"):
        study.collect()


def test_a_copy_does_not_go_where_a_link_leads(study: Any, tmp_path: Path) -> None:
    """Root collects a study whose owner has put a link where the copy is written first."""
    other = tmp_path / "of root"
    other.write_text("kept", encoding="utf-8")
    folder = study.dir / "records" / "11"
    folder.mkdir(parents=True)
    for path in (study.record_dir / "11").iterdir():
        (folder / f".{path.name}.part").symlink_to(other)
    study.collect()
    assert other.read_text(encoding="utf-8") == "kept"
    assert query(study, "SELECT count(*) FROM records WHERE attempt = '11.0'") == [(2,)]
