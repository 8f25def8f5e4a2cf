"""Two jobs side by side: what differs, and from when on; no cause."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steelyard.analysis.job import differences
from steelyard.analysis.job.time_series import JobTimeSeries, Series
from steelyard.wrappers.commands import cli
from steelyard.wrappers.show import job_pair, time_series

from ..collect.study import write_record

START = 1_700_000_000.0


def course(busy: Series, piece_s: float = 1.0) -> JobTimeSeries:
    return JobTimeSeries(("n1",), START, piece_s, {"cpus_busy": busy}, None, 1.0)


@pytest.mark.parametrize(
    ("a", "b", "begin"),
    [
        ([1.0] * 100, [1.0] * 50 + [0.0] * 50, 60.0),  # a tenth of 100 is 10 s of one CPU
        ([1.0] * 100, [1.0] * 100, None),
        ([1.0] * 100, [1.05] * 100, None),
        ([1.0] * 50 + [0.0] * 50, [0.0] * 50 + [1.0] * 50, None),  # they come together again
        ([1.0] * 100, [2.0] * 50, 10.0),
        ([1.0] * 100, [None] * 100, None),
        ([0.0] * 100, [0.0] * 100, None),
    ],
)
def test_from_when_on_they_are_apart(a: Series, b: Series, begin: float | None) -> None:
    found = differences.find_divergence_s(course(a), course(b), "cpus_busy")
    assert found == (None if begin is None else pytest.approx(begin, abs=0.3))
    assert differences.find_divergence_s(course(b), course(a), "cpus_busy") == found


def test_courses_of_other_pieces_are_put_on_one_clock() -> None:
    fine, coarse = course([1.0, 3.0, 5.0, 7.0]), course([2.0, 6.0], 2.0)
    for one in (fine, coarse):
        assert differences.resample(one.series["cpus_busy"], one.piece_s, 2.0, 3) == [
            2,
            6,
            None,
        ]
    assert differences.resample([None, 4.0], 1.0, 2.0, 1) == [4.0]  # the mean of what is known


def test_bytes_over_time_are_told_of_both_and_where_they_part() -> None:
    """What neither had has no line; what one had has two."""
    read, nothing = {"read_bytes_per_s": [2e6] * 10}, {"read_bytes_per_s": [0.0] * 10}
    both = {"cpus_busy": [1.0] * 10, "memory_bytes": [1e6] * 10, "tx_bytes_per_s": [0.0] * 10}
    one, other = (
        JobTimeSeries(("n1",), START, 1.0, both | series, None, 1.0) for series in (read, nothing)
    )
    assert job_pair.format_pair(one, other, "read_bytes_per_s", 10) == [
        "  from storage A ██████████ to 2 MB/s",
        "               B ▁▁▁▁▁▁▁▁▁▁ to 0 B/s",
        "               apart by more than a tenth of all from 1.02 s on",
    ]
    assert job_pair.format_pair(one, other, "tx_bytes_per_s", 10) == []
    assert len(job_pair.format_pair(one, other, "memory_bytes", 10)) == 2  # a level does not part
    assert time_series.format_line(one, "read_bytes_per_s", 4) == "  from storage ████ to 2 MB/s"
    assert time_series.format_line(other, "read_bytes_per_s", 4) is None


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Jobs 1 and 2 of records alone: no accounting here."""
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setenv("STEELYARD_RECORD_DIR", str(tmp_path))
    probe = {
        "node_type": "virtual", "virtualization": {"vm": {"name": "kvm"}},
        "kernel": {"release": "6.1.0"}, "cpu": {"model": "a processor"},
    }  # fmt: skip
    write_record(tmp_path / "1", "n1", START, "1", tags={"input": "small"}, probe=probe)
    other = probe | {"kernel": {"release": "6.2.0"}}
    write_record(
        tmp_path / "2", "n2", START + 100, "2", tags={"input": "large"}, probe=other,
        cpu={"cpu_s": 15.0}, memory={"max_memory_bytes": None},
        missing={"memory.max_memory_bytes": "no process was seen"},
    )  # fmt: skip
    return tmp_path


def test_two_jobs(records: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", "1", "2"]) == 0
    text = capsys.readouterr().out
    differs, _, rest = text.partition("alike: ")
    rows = [line.split() for line in differs.splitlines()]
    assert ["kernel", "6.1.0", "6.2.0"] in rows and ["nodes", "n1", "n2"] in rows
    assert ["tags", "input=small", "input=large"] in rows
    assert "processor" in rest.splitlines()[0] and "kernel" not in rest.splitlines()[0]
    assert ["CPU", "time", "5", "s", "15", "s", "3"] in [line.split() for line in rest.splitlines()]
    assert "B: memory: not known on 1 of 1 nodes" in rest
    assert "One run each: this is what differs, not why" in rest
    assert cli.main(["compare", "1", "2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    told = {entry["about"]: (entry["a"], entry["b"]) for entry in document["differences"]}
    assert told["kernel"] == ("6.1.0", "6.2.0")
    (cpu,) = (entry for entry in document["used"] if entry["name"] == "cpu_s")
    assert (cpu["a"], cpu["b"], cpu["ratio"]) == (5.0, 15.0, 3.0)


def with_gpus(energy_j: float | None) -> dict[str, object]:
    return {"gpus": {"of_node": 2, "of_job": 1, "source": "device"}, "gpu_energy_j": energy_j,
            "zones": [{"name": "gpu-0", "of_job": True}]}  # fmt: skip


def test_joules_of_their_own_gpus(records: Path, capsys: pytest.CaptureFixture[str]) -> None:
    why = "a GPU that the scheduler has named may not be opened by the job"
    write_record(records / "3", "n1", START, "3", energy=with_gpus(500.0))
    write_record(records / "4", "n2", START, "4", energy=with_gpus(1250.0))
    write_record(records / "5", "n1", START, "5", energy=with_gpus(None),
                 missing={"energy.gpu_energy_j": why})  # fmt: skip
    assert cli.main(["compare", "3", "4"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["energy", "of", "its", "GPUs", "500", "J", "1.25", "kJ", "2.5"] in rows
    assert cli.main(["compare", "3", "5"]) == 0
    assert f"B: energy of its GPUs: {why}" in capsys.readouterr().out
    assert cli.main(["compare", "1", "2"]) == 0
    assert "GPUs" not in capsys.readouterr().out  # these nodes have none


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["1", "x"], 2, "expected two job ids (4711 4712), or a study and two of its conditions"),
        (["1", "999"], 3, "job 999 is not known"),
        (["1", "2", "--include-invalid"], 2, "two jobs take no option but"),
    ],
)
def test_what_are_not_two_jobs(
    records: Path, words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["compare", *words]) == code
    assert said in capsys.readouterr().err
