"""What `steelyard doctor` advises where a benchmark's needs are not met."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from steelyard.wrappers.base import node
from steelyard.wrappers.commands import doctor as cmd_doctor


def test_what_is_missing_has_a_remedy_that_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "find_program", lambda name: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    advice = {check.found: check.advice or "" for check in cmd_doctor.benchmark_checks()}
    assert advice["iozone was not found"].endswith(": put it on PATH")  # we do not build it
    assert advice["fio was not found"].endswith(": apt install fio")
    assert advice["steelyard-fstest was not found"].endswith(": make all")
    assert "pip install" in advice["the Python module mpi4py was not found"]
    assert len({found for found in advice if "Python module" in found}) == 4


def test_a_record_folder_that_is_a_mount_point_is_a_warning(tmp_path: Path) -> None:
    assert cmd_doctor.check_record_dir(tmp_path).state == "ok"
    check = cmd_doctor.check_record_dir(Path("/proc"))  # the nearest mount point
    assert (check.state, check.found) == ("warning", "/proc is a mount point")
    assert "a folder below it" in (check.advice or "")
    assert cmd_doctor.check_record_dir(tmp_path / "no").state == "warning"


def test_a_module_that_is_there_is_told_with_its_place() -> None:
    check = cmd_doctor.presence("benchmark x", "y", "y: /z", "get it")
    assert (check.state, check.found, check.advice) == ("ok", "y: /z", "")


METERS = Path(__file__).parents[2] / "data" / "meters"


@pytest.mark.parametrize(
    ("tree", "state", "words"),
    [
        ("cray-ex", "ok", "cray-memory (cray, dram); the node's is the sum of cray-node"),
        ("grace-hopper", "ok", "the node's is the sum of hwmon-package-0"),
        ("perf-power", "ok", "perf-package-0, perf-dram-0, perf-package-1, perf-dram-1"),
        ("two-gpus", "warning", "gpu-1 (nvml, accelerator): none of them is the node's"),
    ],
)
def test_energy_tells_each_meter_and_which_make_the_nodes(
    tree: str, state: str, words: str
) -> None:
    check = cmd_doctor.check_energy(METERS / tree)
    assert check.state == state
    assert words in check.found


def test_energy_says_why_there_is_none(tmp_path: Path) -> None:
    check = cmd_doctor.check_energy(tmp_path)
    assert (check.state, check.found) == (
        "warning",
        "no RAPL: /sys/class/powercap is absent: joules will be null",
    )


def test_energy_says_why_a_meter_cannot_be_read(tmp_path: Path) -> None:
    tree = Path(shutil.copytree(METERS / "amd-energy", tmp_path / "tree"))
    path = tree / "sys/class/hwmon/hwmon3/energy6_input"
    path.write_text("no number\n")
    check = cmd_doctor.check_energy(tree)
    assert check.state == "warning"
    assert "joules will be null here: hwmon: it holds no number; read by root" in check.found
