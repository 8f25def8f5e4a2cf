"""RAPL through a made-up tree: sums, wraps, gaps, rights."""

from __future__ import annotations

import os
import subprocess
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.unit.somebody import open_copy

from steelyard.wrappers.base.programs import find_node_program

RANGE_UJ = 262143328850


def two_packages(tree: Any) -> None:
    tree.add("intel-rapl:0", "package-0", RANGE_UJ, 1000)
    tree.add("intel-rapl:0:0", "core", RANGE_UJ, 1000)
    tree.add("intel-rapl:0:1", "dram", 65532610987, 1000)
    tree.add("intel-rapl:1", "package-1", RANGE_UJ, RANGE_UJ - 2_000_000)


def test_packages_and_dram_are_summed_over_a_wrap(sampler: Any, tree: Any) -> None:
    two_packages(tree)
    attached = sampler.attach("--root", tree.root, "--rate", "20")
    for joules in range(1, 6):
        tree.set("intel-rapl:0", 1000 + joules * 1_000_000)
        tree.set("intel-rapl:0:0", 1000 + joules * 500_000)
        tree.set("intel-rapl:0:1", 1000 + joules * 100_000)
        tree.set("intel-rapl:1", (RANGE_UJ - 2_000_000 + joules * 1_000_000) % RANGE_UJ)
        time.sleep(0.06)
    record = attached.end()
    energy = record["energy"]
    zones = {zone["name"]: zone for zone in energy["zones"]}
    assert energy["energy_j"] == pytest.approx(5 + 5 + 0.5)
    assert zones["package-1"]["energy_j"] == pytest.approx(5)
    assert zones["package-1"]["wraps"] == 1
    assert zones["package-0"]["wraps"] == 0
    assert zones["core"]["energy_j"] == pytest.approx(2.5)
    assert [zones[z]["counted"] for z in ("package-0", "core", "dram", "package-1")] == [
        True, False, True, True,
    ]  # fmt: skip
    column = attached.column("energy_j")
    assert column[0] == 0
    assert column == sorted(column)
    assert column[-1] == pytest.approx(5 + 5 + 0.5)  # joules, as in the record
    assert attached.column("energy_j:dram")[-1] == pytest.approx(0.5)


def test_many_wraps(sampler: Any, tree: Any) -> None:
    range_uj = 400_000_000  # 0.8 s at 500 W
    tree.add("intel-rapl:0", "package-0", range_uj)
    attached = sampler.attach("--root", tree.root, "--rate", "50")
    begin = then = time.monotonic()
    joules = 0.0
    while then - begin < 2:
        before, then = then, time.monotonic()
        joules += min(400 * (then - before), 100)  # watts; and where nobody let us go on, no leap
        tree.set("intel-rapl:0", int(joules * 1e6) % range_uj)
        time.sleep(0.01)
    energy = attached.end()["energy"]
    if max(b - a for a, b in pairwise(attached.column("elapsed_s"))) > 0.8:
        assert energy["energy_j"] is None  # a busy machine: the sampler came too late to know
        return
    assert energy["energy_j"] == pytest.approx(joules, abs=1e-5)
    assert energy["zones"][0]["wraps"] == int(joules * 1e6) // range_uj >= 1


def test_a_low_rate_is_raised_to_see_every_wrap(sampler: Any, tree: Any, waiting: Any) -> None:
    tree.add("intel-rapl:0", "package-0", 400_000_000)  # a quarter of 0.8 s between samples
    attached = sampler.attach("--root", tree.root, "--rate", "0.01")
    waiting("samples before their time", lambda: len(attached.samples) >= 4)
    record = attached.end()
    assert record["sampler"]["rate_hz"] == 0.01
    assert record["energy"]["energy_j"] == 0


def test_a_gap_in_which_a_wrap_may_hide_has_no_value(sampler: Any, tree: Any) -> None:
    tree.add("intel-rapl:0", "package-0", 100_000_000)  # 0.2 s at 500 W
    tree.add("intel-rapl:1", "package-1", RANGE_UJ)
    attached = sampler.attach("--root", tree.root, "--rate", "10")
    attached.send("rate 0")
    time.sleep(0.4)
    attached.send("rate 10")
    time.sleep(0.25)
    record = attached.end()
    zones = record["energy"]["zones"]
    assert [zone["energy_j"] for zone in zones] == [None, 0]
    assert record["energy"]["energy_j"] is None  # a part of the node is not the node
    assert record["missing"]["energy.zones.0.energy_j"]
    assert attached.samples[-1]["energy_j:package-0"] == ""
    assert attached.samples[0]["energy_j:package-0"] != ""
    assert record["complete"] is True


def test_no_rapl_is_null_with_the_reason(sampler: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    _, measured = sampler.run(["true"], "--root", tmp_path / "empty")
    record = measured.record
    assert record["energy"] == {
        "energy_j": None, "zones": [], "scope": "node", "covers": [], "integrated": False,
        "gpu_energy_j": None, "gpus": {"of_node": 0, "of_job": None, "source": None},
        "idle_w": None, "idle_source": None,
    }  # fmt: skip
    assert "/sys/class/powercap" in record["missing"]["energy.energy_j"]
    for path in ("network.rx_bytes", "tcp.sent_segments", "pressure.cpu_some_s"):
        part, name = path.split(".")
        assert record[part][name] is None
        assert record["missing"][path]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become nobody")
def test_an_ordinary_user_measures_a_command_and_is_told_why_there_are_no_joules(
    sampler: Any, tree: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_packages(tree)
    for path in tree.root.rglob("energy_uj"):
        path.chmod(0o400)
    monkeypatch.setenv("STEELYARD_NODE", str(open_copy(find_node_program(), tmp_path)))
    folder = tmp_path / "mine"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    sampler.base = folder
    user = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    done, measured = sampler.run(
        ["sh", "-c", "head -c 5000000 /dev/zero > /dev/null"], "--root", tree.root, prefix=user
    )
    assert done.returncode == 0
    record = measured.record
    assert record["complete"] is True
    assert 5_000_000 <= record["io"]["wchar_bytes"] < 5_010_000
    assert record["energy"]["energy_j"] is None
    assert "readable by root only" in record["missing"]["energy.energy_j"]
    assert "readable by root only" in record["missing"]["energy.zones.0.energy_j"]
    assert measured.record_path.stat().st_uid == 65534


def test_counters_are_read_after_rights_are_dropped(sampler: Any, tree: Any) -> None:
    """As root, zones that only root may open are read by a child that is nobody."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    two_packages(tree)
    for path in tree.root.rglob("energy_uj"):
        path.chmod(0o400)
    attached = sampler.attach("--root", tree.root, "--rate", "20")
    status = Path(f"/proc/{attached.child_pid}/status").read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert set(fields["Uid"].split()) == {"65534"}
    assert int(fields["CapEff"], 16) == 1 << 19 | 1 << 2  # SYS_PTRACE, DAC_READ_SEARCH
    assert int(fields["CapBnd"], 16) == 0
    assert fields["NoNewPrivs"] == "1"
    tree.set("intel-rapl:0", 3_001_000)
    time.sleep(0.1)
    assert attached.end()["energy"]["energy_j"] == pytest.approx(3)


def test_processes_of_other_users_are_read(sampler: Any, waiting: Any) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to start processes of another user")
    attached = sampler.attach("--rate", "20")
    script = "setpriv --reuid=65534 --clear-groups head -c 7000000 /dev/zero > /dev/null; read"
    root = subprocess.Popen(["bash", "-c", f"bash -c '{script}'; true"], stdin=subprocess.PIPE)
    attached.send(f"root {root.pid}")
    waiting("its bytes", lambda: (attached.totals()["wchar_bytes"] or 0) >= 7_000_000)
    root.communicate(timeout=90)
    record = attached.end()
    assert 7_000_000 <= record["io"]["wchar_bytes"] < 7_010_000


def write_stat(tree: Any, ticks: int) -> None:
    proc = tree.root / "proc"
    proc.mkdir(parents=True, exist_ok=True)
    (proc / "new").write_text(f"cpu  {ticks} 10 10 5000 9 5 5 3 {ticks} 0\ncpu0 1 1 1 1 1 1 1\n")
    (proc / "new").replace(proc / "stat")


def test_the_nodes_cpu_time_stands_beside_its_joules(sampler: Any, tree: Any) -> None:
    """Ticks of 10 ms; the file is opened once, so it must be changed in place."""
    two_packages(tree)
    write_stat(tree, 100)
    attached = sampler.attach("--root", tree.root, "--rate", "20")
    stat = tree.root / "proc/stat"
    text = stat.read_text().replace("cpu  100", "cpu  225").replace(" 5 5 3 ", " 5 5 53 ")
    with stat.open("r+") as file:
        file.write(text)
    record = attached.end()
    assert record["cpu"]["node_cpu_s"] == pytest.approx(1.25, abs=1e-9)
    assert record["cpu"]["node_steal_s"] == pytest.approx(0.5, abs=1e-9)
    column = attached.column("node_cpu_s")
    assert (column[0], column[-1]) == (0, pytest.approx(1.25, abs=1e-9))


def test_the_nodes_cpu_time_is_not_read_without_joules(sampler: Any, tree: Any) -> None:
    write_stat(tree, 100)
    record = sampler.attach("--root", tree.root).end()
    assert record["cpu"]["node_cpu_s"] is None
    assert "energy counter" in record["missing"]["cpu.node_cpu_s"]
