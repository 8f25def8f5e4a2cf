"""What `steelyard calibrate` runs, where, and what it says of what it cannot run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis.sources import sacct
from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.calibrate import calibrate, job_traces, loads, slurm, ways, wire
from steelyard.wrappers.calibrate import energy as calibrate_energy
from steelyard.wrappers.calibrate import launchers as calibrate_launchers
from steelyard.wrappers.calibrate import local as runs
from steelyard.wrappers.calibrate.table import Cell, Limit, Table, Trouble

CELL = Cell("w", "l", "CPU", "s", "record", 1, 1, Limit())


def test_every_way_the_design_names_is_there() -> None:
    names = [way.name for way in ways.every(ways.Maker(Path("/load")), quick=False)]
    assert len(set(names)) == len(names)
    for wanted in ("sbatch", "sbatch, srun in it", "srun alone", "srun alone, tagged",
                   "salloc, srun twice", "array", "het job", "two nodes, work on one",
                   "--overlap", "shared node", "requeue", "0 samples a second",
                   "1 samples a second", "10 samples a second", "100 samples a second",
                   "sbatch: 10 orphans", "sbatch: SIGCHLD ignored",
                   "sbatch: 500 processes of 1 ms"):  # fmt: skip
        assert wanted in names


def test_a_users_options_reach_every_command(tmp_path: Path) -> None:
    (tmp_path / "node").write_text("n1")
    make = ways.Maker(Path("/load"), ("--partition=short",))
    for way in ways.every(make, quick=False):
        for command in way.commands(tmp_path):
            assert "--partition=short" in command.argv
            assert (
                "--tag" not in " ".join(command.argv)
                or "tagged" in way.name
                or "salloc" in way.name
            )


def test_components_of_a_het_job_are_told_by_their_nodes() -> None:
    rows = {
        "20": [job_traces.Row("20", True, 1, ("n1",), None)],
        "21": [job_traces.Row("21", True, 1, ("n3", "n4"), None)],
    }
    assert slurm.job_of(loads.Result("20", "n1", {}), rows) == "20"
    assert slurm.job_of(loads.Result("20", "n4", {}), rows) == "21"


def test_a_row_of_the_accounting() -> None:
    said = dict.fromkeys(sacct.FIELDS, "") | {
        "JobID": "12", "JobIDRaw": "12", "State": "COMPLETED", "Start": "1", "End": "4",
        "ElapsedRaw": "3", "NodeList": "n[1-2]", "AdminComment": '{"steelyard":1,"cpu_s":0.5}',
    }  # fmt: skip

    def row(**changed: str) -> job_traces.Row:
        parsed = sacct.parse_row(list((said | changed).values()))
        assert parsed is not None
        return job_traces.of_row(parsed)

    assert row() == job_traces.Row("12", True, 3, ("n1", "n2"), {"steelyard": 1, "cpu_s": 0.5})
    assert row(AdminComment="not ours").comment is None
    for words in ("RUNNING", "REQUEUE_HOLD"):
        assert not row(State=words).ended
    assert not row(End="Unknown").ended


def test_each_start_has_its_own_extern_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """As sacct lists them: a start, its steps, the next start, whose extern step goes on."""
    lines = [
        ("12", "REQUEUED", "1", "4", "3"), ("12.batch", "CANCELLED", "1", "4", "3"),
        ("12.extern", "CANCELLED", "1", "9", "8"),
        ("12", "COMPLETED", "20", "22", "2"), ("12.extern", "RUNNING", "20", "Unknown", "5"),
        ("13", "COMPLETED", "20", "22", "2"),
    ]  # fmt: skip

    def told(_: sacct.Sacct, arguments: list[str], output: int) -> None:
        assert "-D" in arguments and "--allocations" not in arguments
        for job, state, start, end, took in lines:
            cells = (job, state, start, end, took, "n1", "", job)
            os.write(output, (sacct.DELIMITER.join(cells) + "\n").encode())

    monkeypatch.setattr(sacct.Sacct, "run", told)
    found = job_traces.rows(["12", "13"])
    assert [(row.elapsed_s, row.extern_s, row.whole) for row in found["12"]] == [
        (3, 8, True),
        (2, 5, False),
    ]
    assert [(row.elapsed_s, row.extern_s, row.whole) for row in found["13"]] == [(2, None, True)]


def test_records_one_after_another() -> None:
    text = '{"node": "n1"}\n{"node": "n2", "io": {}}\ncat: nothing\n{"cut'
    assert [found["node"] for found in job_traces.documents(text)] == ["n1", "n2"]


def asked(**more: Any) -> calibrate.Asked:
    values: dict[str, Any] = {
        "schedulers": ("local",), "insists": True, "quick": True, "only": "", "launchers": [],
        "options": (), "record_dirs": (Path("/records"),), "patience_s": 1.0,
    }  # fmt: skip
    return calibrate.Asked(**(values | more))


def test_ctrl_c_keeps_what_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def two(*_: object) -> Iterator[tuple[str, Any]]:
        yield "first", lambda: iter([CELL])
        yield "second", interrupted

    def interrupted() -> Iterator[Cell]:
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "every", two)
    table = Table()
    meta = calibrate.fill(asked(), tmp_path, table, lambda _: None)
    assert table.interrupted and table.cells == [CELL]
    assert meta["host"]


def test_without_slurm_it_is_said_and_where_it_was_named_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    table = Table()
    calibrate.fill(asked(schedulers=("slurm",), insists=False), tmp_path, table, lambda _: None)
    (trouble,) = table.troubles
    assert trouble.way == "jobs of Slurm" and "scontrol is not on this machine" in trouble.why
    assert not trouble.broken
    with pytest.raises(MissingError, match="scontrol is not on this machine"):
        calibrate.fill(asked(schedulers=("slurm",)), tmp_path, Table(), lambda _: None)


def test_launchers_that_are_not_here_say_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = calibrate_launchers.here(None)
    assert not found.usable
    assert {trouble.way for trouble in found.lacking} == {
        f"run --in {kind}"
        for kind in ("unshare", "docker", "podman", "apptainer", "lxc", "systemd-nspawn")
    }
    (nonsense,) = calibrate_launchers.here(["fly:x"]).lacking
    assert "no launcher" in nonsense.why


def weighing(record: dict[str, Any], **values: float) -> runs.Weighing:
    return runs.Weighing([loads.Result("none", "none", dict(values))], record, {})


RATE = {"network_conditions": {"valid": True, "applied": "rate=20mbit"}}


@pytest.mark.parametrize(
    ("record", "took_s", "verdict"),
    [
        (RATE, 1.673, "ok"),
        (RATE, 1.5, "WRONG"),
        (RATE, 3.3, "WRONG"),
        ({"network_conditions": {"valid": False, "applied": "rate=20mbit"}}, 1.673, "WRONG"),
        ({"network_conditions": None, "missing": {"network_conditions": "none"}}, 1.673, "told"),
    ],
)
def test_a_rate_is_judged_by_what_came_through(
    record: dict[str, Any], took_s: float, verdict: str
) -> None:
    plain = weighing({}, elapsed_s=0.01)
    cell = wire.rate_cell("way", plain, weighing(record, elapsed_s=took_s + 0.01))
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
    found = weighing({"network_conditions": {"rtt": rtt}}, connect_us=20_300)
    cell = wire.delay_cell("way", weighing({}, connect_us=200), found)
    assert cell.verdict == verdict


def test_joules_have_a_witness(tmp_path: Path) -> None:
    (tmp_path / "perf.csv").write_text(
        "# started on Sun\n\n95.50;Joules;power/energy-pkg/;3000;100.00;;\n"
        "4.50;Joules;power/energy-ram/;3000;100.00;;\n"
    )
    assert calibrate_energy.perf_j(tmp_path) == 100
    assert calibrate_energy.perf_j(tmp_path / "absent") is None
    hwmon = tmp_path / "sys/class/hwmon/hwmon0"
    hwmon.mkdir(parents=True)
    for number, label in ((1, "Ecore000"), (2, "Esocket0"), (3, "Esocket1")):
        (hwmon / f"energy{number}_label").write_text(f"{label}\n")
        (hwmon / f"energy{number}_input").write_text(f"{number}000000\n")
    assert calibrate_energy.hwmon_j(calibrate_energy.hwmon_sensors(tmp_path)) == 5
    assert calibrate_energy.hwmon_j([]) is None
    assert calibrate_energy.cell(100, 103).verdict == "ok"
    assert calibrate_energy.cell(100, 200).verdict == "WRONG"
    assert calibrate_energy.cell(100, 50).verdict == "WRONG"


def test_a_broken_way_is_no_right_scale() -> None:
    assert not Table([CELL], [Trouble("run", "no words", broken=True)]).is_right
