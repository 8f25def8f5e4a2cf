"""The sources of joules, bytes and CPU time against each other: agreement, and each disagreement."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.unit.collect import study as HELP

from steelyard.analysis.collect import checks
from steelyard.analysis.findings.registry import find_all
from steelyard.analysis.sources import sacct
from steelyard.analysis.summary.summary import summarize

query = HELP.query


@pytest.fixture
def study(tmp_path: Path) -> Any:
    study = HELP.Study(tmp_path)
    study.everything()
    return study


def rows(study: Any, where: str = "true") -> list[tuple[Any, ...]]:
    return query(
        study,
        "SELECT node, quantity, source_a, value_a, source_b, value_b, agrees FROM checks "
        f"WHERE attempt = '11.0' AND {where} ORDER BY ALL",
    )


def test_samples_and_records_of_every_node_are_compared(study: Any) -> None:
    study.collect()
    found = rows(study, "source_b = 'records'")
    assert len({row[0] for row in found}) == 2
    assert {row[1] for row in found} == {
        "cpu_s", "rchar_bytes", "wchar_bytes", "read_bytes", "write_bytes", "rx_bytes", "tx_bytes"
    }  # fmt: skip
    assert all(row[-1] for row in found)


def test_energy_that_no_source_has_is_not_compared(study: Any) -> None:
    study.collect()
    assert rows(study, "quantity = 'energy_j'") == []


def test_samples_of_another_job_are_told(study: Any) -> None:
    row = study.row("11")
    (path,) = (study.record_dir / "11").glob(f"{row.nodes[0]}.*.json")
    document = json.loads(path.read_text(encoding="utf-8"))
    document["io"]["rchar_bytes"] = 101
    path.write_text(json.dumps(document), encoding="utf-8")
    study.collect()
    assert rows(study, "NOT agrees AND source_b = 'records'") == [
        (row.nodes[0], "rchar_bytes", "samples", 100.0, "records", 101.0, False)
    ]


def with_accounting(study: Any, **fields: str) -> None:
    """Job 11 of the recorded accounting with other figures."""
    original = study.accounting.rows

    def changed(job_ids: Any, since_unix_s: float) -> Any:
        for row in original(job_ids):
            names = {n: v for n, v in fields.items() if (n[:3] == "Max") == (row.step is not None)}
            if row.job_id != "11":
                yield row
                continue
            cells = dict(zip(sacct.FIELDS, row.fields, strict=True)) | names
            yield sacct.parse_row(list(cells.values()))

    study.accounting.rows = changed


@pytest.mark.parametrize(
    ("quantity", "field", "value", "agrees"),
    [
        ("cpu_s", "TotalCPU", "00:10.500", True),  # the records have 10 s on two nodes
        ("cpu_s", "TotalCPU", "00:11.600", False),
        ("cpu_s", "TotalCPU", "00:08.287", True),  # seen: 17.9 of 21.6 s, servers not waited for
        ("rchar_bytes", "MaxDiskRead", "0.00M", True),
        ("rchar_bytes", "MaxDiskRead", "1.00M", True),
        ("rchar_bytes", "MaxDiskRead", "9.00M", False),
        ("wchar_bytes", "MaxDiskWrite", "9437184", False),
    ],
)
def test_the_scheduler_has_the_last_word_within_bounds(
    study: Any, quantity: str, field: str, value: str, agrees: bool
) -> None:
    with_accounting(study, **{field: value})
    study.collect()
    found = rows(study, f"source_b = 'scheduler' AND quantity = '{quantity}'")
    assert [row[2] for row in found] == ["records", "samples"]
    assert {row[-1] for row in found} == {agrees}


def test_a_disagreement_is_a_finding(study: Any) -> None:
    with_accounting(study, TotalCPU="00:20.000")
    study.collect()
    (finding,) = [f for f in find_all(summarize(study.dir)) if f.kind.code == "SY24"]
    assert finding.kind.code == "SY24" and finding.text.startswith("CPU time: further apart")
    run = HELP.run_id("twonodes")
    assert f"{run}: CPU time: records 10 s, scheduler 20 s" in finding.places


def test_joules(study: Any) -> None:
    row = study.row("11")
    for node in row.nodes:
        study.record(row, node, energy={"energy_j": 5000.0, "zones": []})
    with_accounting(study, ConsumedEnergyRaw="14000")
    study.collect()
    ((_, _, source, ours, _, theirs, agrees),) = rows(study, "quantity = 'energy_j'")
    assert (source, ours, theirs, agrees) == ("records", 10000.0, 14000.0, False)


def test_zero_joules_of_slurm_are_no_counter(study: Any) -> None:
    row = study.row("11")
    for node in row.nodes:
        study.record(row, node, energy={"energy_j": 5000.0, "zones": []})
    with_accounting(study, ConsumedEnergyRaw="0")
    study.collect()
    assert rows(study, "quantity = 'energy_j'") == []


def test_what_is_not_whole_is_not_compared(study: Any) -> None:
    row = study.row("11")
    study.record(row, row.nodes[0], complete=False, incomplete_reason="killed")
    with_accounting(study, TotalCPU="99:00:00")
    study.collect()
    assert {r[0] for r in rows(study)} == {row.nodes[1]}


def test_a_job_that_was_refused_before_its_run_began_is_not_compared(study: Any) -> None:
    """Slurm counts its own slurmstepd, which put the condition in place and took it back."""
    row = study.row("11")
    shutil.rmtree(study.dir / "runs" / HELP.run_id("twonodes") / "11.0")
    for node in row.nodes:
        study.record(row, node, cpu={"cpu_s": 0.0})
        (path,) = (study.record_dir / "11").glob(f"{node}.*.csv")
        path.unlink()
    with_accounting(study, TotalCPU="00:03.000", State="FAILED", ExitCode="4:0")
    study.collect()
    assert query(study, "SELECT state, exit_code FROM attempts WHERE attempt = '11.0'") == [
        ("failed", 4)
    ]
    assert rows(study, "source_b = 'scheduler'") == []


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:00.016", 0.016),
        ("03:04.567", 184.567),
        ("02:03:04", 7384.0),
        ("1-02:03:04", 93784.0),
        ("", None),
        ("INVALID", None),
    ],
)
def test_times_as_sacct_writes_them(text: str, seconds: float | None) -> None:
    connection = duckdb.connect()
    connection.execute(checks.SECONDS)
    ((found,),) = connection.execute("SELECT sacct_seconds(?)", [text]).fetchall()
    assert found == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("text", "found"), [("0.01M", 10485.76), ("12", 12.0), ("3K", 3072.0), ("", None)]
)
def test_bytes_as_sacct_writes_them(text: str, found: float | None) -> None:
    connection = duckdb.connect()
    connection.execute(checks.BYTES)
    assert connection.execute("SELECT sacct_bytes(?)", [text]).fetchall() == [(found,)]


@pytest.mark.parametrize(
    ("source", "cpu_s", "agrees"),
    [
        ("rusage", 4.9999, True),  # seen: 146.3 ms by wait4, 146.4 in the last sample
        ("rusage", 4.97, False),
        ("rusage", 9.0, True),  # children that no sample saw
        ("cgroup", 4.9999, False),  # the sampler's own reading: the very same
        ("cgroup", 5.0, True),
    ],
)
def test_a_commands_cpu_by_wait4_is_not_the_last_samples(
    study: Any, source: str, cpu_s: float, agrees: bool
) -> None:
    row = study.row("11")
    (path,) = (study.record_dir / "11").glob(f"{row.nodes[0]}.*.json")
    document = json.loads(path.read_text(encoding="utf-8"))
    document["cpu"] = {"cpu_s": cpu_s, "source": source}
    path.write_text(json.dumps(document), encoding="utf-8")
    study.collect()
    where = f"quantity = 'cpu_s' AND source_b = 'records' AND node = '{row.nodes[0]}'"
    assert [(found[3], found[5], found[6]) for found in rows(study, where)] == [
        (5.0, cpu_s, agrees)
    ]
