"""Every kind of meter through made trees: what counts, and joules against a law that we know."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.processes import each_process

from steelyard.wrappers.base.programs import find_node_program

TREES = Path(__file__).parents[2] / "data" / "meters"
CRAY = "sys/cray/pm_counters"
WATTS_IDLE, WATTS_A_CPU = 40.0, 11.0  # the law: joules = 40 x seconds + 11 x CPU seconds


def copy(name: str, to: Path) -> Path:
    return Path(shutil.copytree(TREES / name, to / name))


def put(path: Path, text: str) -> None:
    """In place and by one write, padded to what was there: a kernel's file is never seen cut."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    os.pwrite(fd, f"{text}\n".encode().ljust(48), 0)
    os.close(fd)


def stamp() -> int:
    return time.time_ns() // 1000


def zones(record: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {zone["name"]: zone for zone in record["energy"]["zones"]}


def cpu_s(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


@contextmanager
def moved(write: Callable[[float], None], pid: int) -> Iterator[Callable[[], float]]:
    """A meter that follows the law while `pid` lives; tells the joules so far, at its last move."""
    begin, cpu_begin, told, stop = time.monotonic(), cpu_s(pid), [0.0], threading.Event()

    def move() -> None:
        joules = WATTS_IDLE * (time.monotonic() - begin)
        told[0] = joules + WATTS_A_CPU * (cpu_s(pid) - cpu_begin)
        write(told[0])

    def run() -> None:
        while not stop.wait(0.02):
            move()

    thread = threading.Thread(target=run)
    thread.start()

    def end() -> float:
        stop.set()
        thread.join()
        move()
        return told[0]

    yield end
    stop.set()
    thread.join()


def write_cray(tree: Path) -> Callable[[float], None]:
    def write(joules: float) -> None:
        for name, share in (("energy", 1.0), ("cpu_energy", 0.5), ("memory_energy", 0.125)):
            put(tree / CRAY / name, f"{int(5_000_000 + joules * share)} J {stamp()} us")

    return write


def write_amd(tree: Path) -> Callable[[float], None]:
    def write(joules: float) -> None:
        for socket in (0, 1):
            path = tree / f"sys/class/hwmon/hwmon3/energy{5 + socket}_input"
            put(path, str(int(123_000_000 + joules / 2 * 1e6)))

    return write


def write_perf(tree: Path) -> Callable[[float], None]:
    def write(joules: float) -> None:
        for event, share in (("energy-pkg", 0.375), ("energy-ram", 0.125)):
            for cpu in (0, 28):
                put(tree / f".steelyard/perf/{event}.{cpu}", str(int(joules * share * 2**32)))

    return write


@pytest.mark.parametrize(
    ("name", "write", "covers", "step_j"),
    [
        ("cray-ex", write_cray, ["node"], 1.0),
        ("amd-energy", write_amd, ["package"], 2e-6),
        ("perf-power", write_perf, ["package", "dram"], 4e-6),
    ],
)
def test_joules_follow_the_law_of_a_moving_tree(
    name: str, write: Any, covers: list[str], step_j: float,
    sampler: Any, tmp_path: Path, waiting: Any,
) -> None:  # fmt: skip
    tree = copy(name, tmp_path)
    write(tree)(0.0)
    attached = sampler.attach("--root", tree, "--rate", "20")
    waiting("a first sample", lambda: attached.samples)
    burn = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    with moved(write(tree), burn.pid) as end:
        time.sleep(1.5)
        truth = end()
    burn.kill()
    burn.wait()
    record = attached.end()
    assert truth > WATTS_IDLE * 1.4
    assert record["energy"]["energy_j"] == pytest.approx(truth, abs=step_j)
    assert record["energy"]["covers"] == covers
    assert record["energy"]["integrated"] is False
    assert attached.column("energy_j")[-1] == pytest.approx(truth, abs=step_j)


def test_the_parts_of_a_cray_node_are_told_and_the_whole_counts(
    sampler: Any, tmp_path: Path
) -> None:
    tree = copy("cray-ex", tmp_path)
    _, measured = sampler.run(["true"], "--root", tree)
    found = zones(measured.record)
    assert [name for name, zone in found.items() if zone["counted"]] == ["cray-node"]
    assert {name: (zone["covers"], zone["unit"]) for name, zone in found.items()} == {
        "cray-accelerator-0": ("accelerator", 0),
        "cray-accelerator-1": ("accelerator", 1),
        "cray-accelerator-2": ("accelerator", 2),
        "cray-accelerator-3": ("accelerator", 3),
        "cray-cpu": ("package", None),
        "cray-memory": ("dram", None),
        "cray-node": ("node", None),
    }
    assert {(zone["meter"], zone["resolution_j"]) for zone in found.values()} == {("cray", 1.0)}


def test_a_controller_that_no_longer_counts_is_no_value(
    sampler: Any, tmp_path: Path, waiting: Any
) -> None:
    tree = copy("cray-ex", tmp_path)
    attached = sampler.attach("--root", tree, "--rate", "10")
    waiting("an empty cell", lambda: attached.samples and not attached.samples[-1]["energy_j"])
    record = attached.end()
    # It is 5 s without a change since its first reading, which is before the first sample.
    assert (attached.column("elapsed_s")[-1] or 0) > 4.5
    assert record["energy"]["energy_j"] is None
    assert "stood still" in record["missing"]["energy.energy_j"]
    assert "stood still" in record["missing"]["energy.zones.5.energy_j"]


def test_watts_are_integrated_and_marked(sampler: Any, tmp_path: Path, waiting: Any) -> None:
    tree = copy("grace-hopper", tmp_path)
    attached = sampler.attach("--root", tree, "--rate", "20")
    waiting("joules of a second", lambda: (attached.column("energy_j")[-1] or 0) > 141)
    record = attached.end()
    found = zones(record)
    package = found["hwmon-package-0"]
    assert (package["measures"], package["period_s"]) == ("power", 0.1)
    assert record["energy"]["integrated"] is True
    assert record["energy"]["covers"] == ["package"]
    assert package["elapsed_s"] > 1
    assert package["energy_j"] == pytest.approx(141 * package["elapsed_s"], rel=1e-5)
    assert record["energy"]["energy_j"] == package["energy_j"]
    assert found["hwmon-module-0"]["energy_j"] == pytest.approx(
        412 * found["hwmon-module-0"]["elapsed_s"], rel=1e-5
    )


def test_watts_that_change_are_integrated_to_a_period(
    sampler: Any, tmp_path: Path, waiting: Any
) -> None:
    """Whatever a period is on a busy machine: each step is in the joules by the second reading."""
    tree = copy("grace-hopper", tmp_path)
    path = tree / "sys/class/hwmon/hwmon2/device/power1_average"
    put(path, "100000000")
    attached = sampler.attach("--root", tree, "--rate", "20")

    def readings() -> int:
        return len(set(attached.column("energy_j")))

    def wait_readings(count: int) -> None:
        wanted = readings() + count
        waiting("readings", lambda: readings() >= wanted)

    wait_readings(2)
    begin, truth, then, before = time.time(), 0.0, 0.0, 100
    steps = []  # when, and of how many watts
    for watts in (300, 50, 200, 0):
        wait_readings(6)
        now = time.time() - begin
        truth, then = truth + before * (now - then), now
        if watts:
            put(path, str(watts * 1_000_000))
            steps.append((begin + now, abs(watts - before)))
            before = watts
    record = attached.end()
    slack = sum(watts * second_reading_s(attached, unix_s) for unix_s, watts in steps)
    package = zones(record)["hwmon-package-0"]
    # What it measured before the first moment and after the last was at 100 W and at 200 W.
    around_s = package["elapsed_s"] - now
    assert truth + 100 * around_s - slack < package["energy_j"] < truth + 200 * around_s + slack


def second_reading_s(attached: Any, unix_s: float) -> float:
    """How long after this moment joules grew for the second time."""
    rows = list(zip(attached.column("unix_s"), attached.column("energy_j"), strict=True))
    grown = [after[0] for before, after in pairwise(rows) if after[1] != before[1]]
    return [at for at in grown if at > unix_s][1] - unix_s


def test_a_bmcs_watts_count_where_nothing_else_does(
    sampler: Any, tmp_path: Path, waiting: Any
) -> None:
    tree = copy("dcmi", tmp_path)
    attached = sampler.attach("--root", tree, "--rate", "10")
    waiting("joules of a second", lambda: (attached.column("energy_j")[-1] or 0) > 300)
    record = attached.end()
    (zone,) = record["energy"]["zones"]
    assert (zone["meter"], zone["covers"], zone["resolution_w"]) == ("dcmi", "node", 1.0)
    assert zone["elapsed_s"] > 1
    assert zone["energy_j"] == pytest.approx(300 * zone["elapsed_s"], rel=1e-5)
    assert record["energy"]["energy_j"] == zone["energy_j"]
    assert (record["energy"]["covers"], record["energy"]["integrated"]) == (["node"], True)
    assert record["cpu"]["node_cpu_s"] is None  # nothing is shared out by CPU time


def test_totals_that_are_asked_for_have_what_a_slow_meter_tells_then(
    sampler: Any, tmp_path: Path, waiting: Any
) -> None:
    """AdminComment lacked up to a period of 5 s: 424 J where the record had 506."""
    attached = sampler.attach("--root", copy("dcmi", tmp_path), "--rate", "10")
    waiting("two seconds", lambda: attached.samples and attached.column("elapsed_s")[-1] > 2)
    totals = json.loads(attached.send("totals 1"))
    record = attached.end()
    (zone,) = record["energy"]["zones"]
    # Neither what is before the first reading nor the time of a question has joules.
    without_s = 1 + max(0, record["elapsed_s"] - zone["elapsed_s"])
    assert 300 * (totals["elapsed_s"] - without_s) < totals["energy_j"]
    assert totals["energy_j"] <= record["energy"]["energy_j"]


def test_a_bmcs_watts_stand_beside_rapl_and_are_not_added(
    sampler: Any, tree: Any, tmp_path: Path
) -> None:
    shutil.copytree(TREES / "dcmi", tree.root)
    tree.add("intel-rapl:0", "package-0", 262143328850)
    attached = sampler.attach("--root", tree.root, "--rate", "10")
    tree.set("intel-rapl:0", 3_000_000)
    record = attached.end()
    assert record["energy"]["energy_j"] == 3
    assert [zone["counted"] for zone in record["energy"]["zones"]] == [True, False]
    assert record["energy"]["integrated"] is False


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("dc 2c 01 f0 00 5e 02 36 01 9a 6a b2 5f e8 03 00 00 00", "does not measure"),
        ("dc 00 00 00 00 00 00 00 00 9a 6a b2 5f e8 03 00 00 40", "0 W"),
        ("dc 2c 01", "no DCMI power reading"),
    ],
)
def test_a_bmc_that_tells_no_power_is_null(
    sampler: Any, tmp_path: Path, answer: str, why: str
) -> None:
    tree = copy("dcmi", tmp_path)
    (tree / ".steelyard/ipmi/dcmi-power").write_text(f" {answer}\n")
    attached = sampler.attach("--root", tree, "--rate", "10")
    time.sleep(0.3)
    record = attached.end()
    assert record["energy"]["energy_j"] is None
    assert why in record["missing"]["energy.energy_j"]


def test_amds_gpus_are_told_apart(sampler: Any, tmp_path: Path, waiting: Any) -> None:
    tree = copy("two-amd-gpus", tmp_path)
    attached = sampler.attach("--root", tree, "--rate", "20")
    waiting("a reading", lambda: attached.samples and attached.samples[-1]["energy_j:amdgpu-1"])
    path = tree / "sys/class/drm/card1/device/gpu_metrics"
    with path.open("r+b") as file:
        file.seek(24)
        file.write(((200 << 16) + (12 << 16) + (1 << 15)).to_bytes(8, "little"))
    waiting("its joules", lambda: attached.column("energy_j:amdgpu-1")[-1:] == [12.5])
    record = attached.end()
    assert [zone["energy_j"] for zone in record["energy"]["zones"]] == [0.0, 12.5]
    assert {(z["meter"], z["covers"]) for z in record["energy"]["zones"]} == {
        ("amdgpu", "accelerator")
    }
    assert record["energy"]["energy_j"] is None


def test_watts_of_an_amd_gpu_whose_accumulator_stays_0_are_integrated(
    sampler: Any, tmp_path: Path, waiting: Any
) -> None:
    """RDNA4: 20 W and a count that is always 0, which was reported as 0 J."""
    tree = copy("two-amd-gpus", tmp_path)
    path = tree / "sys/class/drm/card1/device/gpu_metrics"
    table = bytearray(path.read_bytes())
    table[22:24] = (20).to_bytes(2, "little")
    table[24:32] = bytes(8)
    path.write_bytes(table)
    attached = sampler.attach("--root", tree, "--rate", "20")
    waiting("watts of two seconds", lambda: (attached.column("energy_j:amdgpu-1") or [0])[-1])
    zones = attached.end()["energy"]["zones"]
    assert [zone["measures"] for zone in zones] == ["energy", "power"]
    assert zones[0]["energy_j"] == 0.0
    assert zones[1]["energy_j"] == pytest.approx(20.0 * zones[1]["elapsed_s"], abs=1e-3)
    assert zones[1]["elapsed_s"] > 0.5


def test_zenergys_sockets_are_packages(sampler: Any, tmp_path: Path, waiting: Any) -> None:
    tree = copy("zenergy", tmp_path)
    attached = sampler.attach("--root", tree, "--rate", "20")
    waiting("a first sample", lambda: attached.samples)
    put(tree / "sys/class/hwmon/hwmon3/energy2_input", "91500000")
    record = attached.end()
    assert record["energy"]["energy_j"] == 3.5
    assert record["energy"]["covers"] == ["package"]
    assert [zone["name"] for zone in record["energy"]["zones"]] == ["hwmon-package-0"]


def test_who_reads_slow_meters_is_no_process_of_the_job_and_ends_with_it(
    sampler: Any, tmp_path: Path, waiting: Any
) -> None:
    tree = copy("grace-hopper", tmp_path)
    attached = sampler.attach("--root", tree, "--rate", "20")
    waiting("parent, child and reader", lambda: len(samplers(tree)) == 3)
    attached.end()
    waiting("the end of all", lambda: not samplers(tree))
    _, measured = sampler.run(["sh", "-c", "sleep 0.5"], "--root", tree, "--rate", "20")
    assert measured.record["processes"]["max_processes"] <= 2
    assert measured.record["complete"] is True
    waiting("the end of all", lambda: not samplers(tree))


def test_a_reader_that_is_killed_leaves_no_value(
    sampler: Any, tmp_path: Path, waiting: Any
) -> None:
    tree = copy("grace-hopper", tmp_path)
    attached = sampler.attach("--root", tree, "--rate", "20")
    (reader,) = waiting(
        "the reader", lambda: samplers(tree) - {attached.process.pid, attached.child_pid}
    )
    waiting("joules", lambda: any(attached.column("energy_j")))
    os.kill(reader, 9)
    waiting("an empty cell", lambda: not attached.samples[-1]["energy_j"])
    record = attached.end()
    assert record["energy"]["energy_j"] is None
    assert "no longer answers" in record["missing"]["energy.energy_j"]
    assert record["complete"] is True


def samplers(tree: Path) -> set[int]:
    """Processes of steelyard-node sample that read this tree."""
    lines = ((pid, line.split(b"\0")) for pid, line in each_process("cmdline"))
    return {
        pid
        for pid, words in lines
        if words[0].endswith(b"steelyard-node") and str(tree).encode() in words
    }


def with_dies(tree: Path, vendor: str) -> Path:
    """Two dies of one package, as powercap and as perf's events show them."""
    put(tree / "proc/cpuinfo", f"processor\t: 0\nvendor_id\t: {vendor}\n")
    for die in (0, 1):
        zone = tree / f"sys/class/powercap/intel-rapl:{die}"
        put(zone / "name", f"package-0-die-{die}")
        put(zone / "energy_uj", f"12345678{die}")
        put(zone / "max_energy_range_uj", "65532610987")
        put(tree / f"sys/devices/system/cpu/cpu{28 * die}/topology/die_id", str(die))
        put(tree / f"sys/devices/system/cpu/cpu{28 * die}/topology/physical_package_id", "0")
    return tree


@pytest.mark.parametrize(("vendor", "dies"), [("GenuineIntel", 2), ("AuthenticAMD", 1), ("HygonGenuine", 1)])  # fmt: skip
@pytest.mark.parametrize("reader", ["powercap", "perf"])
def test_dies_that_show_one_counter_count_once(
    tmp_path: Path, reader: str, vendor: str, dies: int
) -> None:
    """AMD's powercap shows the package's counter at each die: 68 W were told as 137. Intel's dies
    have their own, and perf's were taken for one."""
    tree = with_dies(copy("perf-power", tmp_path), vendor)
    if reader == "perf":
        shutil.rmtree(tree / "sys/class/powercap")
    words = [find_node_program() or "", "probe", "--root", str(tree)]
    said = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    packages = [one for one in said["meters"] if one["counted"] and one["covers"] == "package"]
    assert {one["meter"] for one in packages} == {reader}
    assert len({one["name"] for one in packages}) == len(packages) == dies
