"""`steelyard run` around known loads, the wire and joules; and what is listed that cannot be
run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steelyard.wrappers.calibrate import (
    calibration,
    known_loads,
    local_runs,
    network_link,
    second_energy_meter,
    table,
)
from steelyard.wrappers.calibrate.table import Cell, Limit, Table, Trouble

CELL = Cell("m", "l", "CPU", "s", "record", 1, 1, Limit())


def request() -> calibration.Request:
    return calibration.Request("local", True, "", [], (), (Path("/records"),), 1.0)


def test_ctrl_c_keeps_what_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def two(*_: object) -> Iterator[tuple[str, Any]]:
        yield "first", lambda: iter([CELL])
        yield "second", interrupted

    def interrupted() -> Iterator[Cell]:
        raise KeyboardInterrupt

    monkeypatch.setattr(local_runs, "list_methods", two)
    table = Table()
    facts = calibration.fill_table(request(), tmp_path, table, lambda _: None)
    assert table.interrupted and table.cells == [CELL]
    assert facts["host"]


def test_launchers_that_are_not_here_have_their_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = dict(local_runs.list_usable_launchers(None))
    assert found.keys() == {"unshare", "docker", "podman", "apptainer", "lxc", "systemd-nspawn"}
    assert all(found.values())
    ((name, why),) = local_runs.list_usable_launchers(["fly:x"])
    assert name == "fly:x" and "no launcher" in (why or "")


def measurement(record: dict[str, Any], **values: float) -> local_runs.Measurement:
    result = known_loads.Result("none", "none", dict(values))
    return local_runs.Measurement([result], record, {})


RATE = {"network_conditions": {"valid": True, "applied": "rate=20mbit"}}


@pytest.mark.parametrize(
    ("record", "took_s", "verdict"),
    [
        (RATE, 1.673, "ok"),
        (RATE, 1.5, "WRONG"),
        (RATE, 3.3, "WRONG"),
        ({"network_conditions": {"valid": False, "applied": "rate=20mbit"}}, 1.673, "WRONG"),
        ({"network_conditions": None, "missing": {"network_conditions": "none"}}, 1.673, "stated"),
    ],
)
def test_a_rate_is_judged_by_what_came_through(
    record: dict[str, Any], took_s: float, verdict: str
) -> None:
    plain = measurement({}, elapsed_s=0.01)
    cell = network_link.rate_cell("method", plain, measurement(record, elapsed_s=took_s + 0.01))
    assert cell.verdict == verdict


@pytest.mark.parametrize(
    ("measured_s", "verdict"),
    [(0.0203, "ok"), (0.0101, "WRONG"), (0.041, "WRONG"), (None, "WRONG")],
)
def test_a_delay_is_judged_by_the_loads_own_connection(
    measured_s: float | None, verdict: str
) -> None:
    during = None if measured_s is None else {"median_s": measured_s + 0.0001}
    rtt = {"before": {"median_s": 0.0001}, "during_start": during}
    found = measurement({"network_conditions": {"rtt": rtt}}, connect_us=20_300)
    cell = network_link.delay_cell("method", measurement({}, connect_us=200), found)
    assert cell.verdict == verdict


def test_joules_have_a_witness(tmp_path: Path) -> None:
    (tmp_path / "perf.csv").write_text(
        "# started on Sun\n\n95.50;Joules;power/energy-pkg/;3000;100.00;;\n"
        "4.50;Joules;power/energy-ram/;3000;100.00;;\n"
    )
    assert second_energy_meter.read_perf_j(tmp_path) == 100
    assert second_energy_meter.read_perf_j(tmp_path / "absent") is None
    hwmon = tmp_path / "sys/class/hwmon/hwmon0"
    hwmon.mkdir(parents=True)
    for number, label in ((1, "Ecore000"), (2, "Esocket0"), (3, "Esocket1")):
        (hwmon / f"energy{number}_label").write_text(f"{label}\n")
        (hwmon / f"energy{number}_input").write_text(f"{number}000000\n")
    assert second_energy_meter.read_hwmon_j(second_energy_meter.find_hwmon_sensors(tmp_path)) == 5
    assert second_energy_meter.read_hwmon_j([]) is None
    assert second_energy_meter.energy_cell(100, 103).verdict == "ok"
    assert second_energy_meter.energy_cell(100, 200).verdict == "WRONG"
    assert second_energy_meter.energy_cell(100, 50).verdict == "WRONG"


def test_a_launch_method_that_failed_is_no_right_scale() -> None:
    assert not Table([CELL], [Trouble("run", "no words", failed=True)]).is_right


@pytest.mark.parametrize(
    ("source", "more_s", "verdict"),
    [("bpf", 0.04, "ok"), ("bpf", 0.6, "WRONG"), ("bpf", -0.001, "WRONG"), ("", 0.04, "WRONG")],
)
def test_ends_that_only_the_kernel_sees_are_allowed_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, more_s: float, verdict: str
) -> None:
    """Of 500 processes that nobody waits for the load cannot see the ends, 0.1 ms each; the kernel,
    where it counts, does. Without it nothing is in the figure that the load has not read."""
    record = {
        "cpu": {"cpu_s": 0.6 + more_s}, "complete": True, "io": {"source": source},
        "bpf": {"missed_ends": 0},
    }  # fmt: skip
    found = measurement(record, cpu_us=100_000, unwaited_cpu_us=500_000)
    monkeypatch.setattr(local_runs.Bench, "measure", lambda *_: found)
    load = known_loads.KnownLoad("500", (), (table.CPU,), unwaited=500)
    (cell,) = local_runs.measure_plain(local_runs.Bench(tmp_path, tmp_path), "run", load)
    assert isinstance(cell, Cell) and cell.verdict == verdict
