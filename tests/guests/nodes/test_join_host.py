"""A guest's job joined to its host's record while the guest runs.

A sampler follows the virtual machine's process, together with a counter of joules of a known law.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.guests.nodes.host_meter import BUSY_W, IDLE_W
from tests.throwaway_lab import Lab, until

from steelyard.wrappers.cluster.cluster_config import Layout

METER = Path(__file__).with_name("host_meter.py")
RANGE_UJ = 262143328850
SENT_BYTES = 8_000_000
# In private namespaces, which end with it: a tree with this machine's /proc and devices, the
# cluster's network, and a powercap zone. $0: tree, $1: meter, $2 …: the sampler.
HOST = """
mount --bind /proc "$0/proc" && mount -t sysfs sysfs "$0/new" &&
mount --bind "$0/new/devices" "$0/sys/devices" && mount --bind "$0/new/class/net" "$0/sys/class/net" &&
{ python3 "$1" "$0/sys/class/powercap/intel-rapl:0/energy_uj" $$ & } && shift && exec "$@"
"""
# Listens on the host's node; works and sends in the guest, twice.
LISTEN = """
import socket
with socket.create_server(("", 0)) as server:
    print(server.getsockname()[1], flush=True)
    with server.accept()[0] as there:
        while there.recv(1 << 16): pass
"""
WORK = """
import os, socket, sys, time
print(os.environ["SLURM_JOB_ID"])
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as there:
    for _ in range(2):
        there.sendall(bytes(int(sys.argv[3]) // 2))
        begin = time.process_time()
        while time.process_time() - begin < 0.5: pass
        time.sleep(0.5)
"""


@pytest.fixture
def host_records(virtual_lab: Lab, tmp_path: Path) -> Iterator[Path]:
    """A folder in which the record of v1 as its host has it grows."""
    tree, records = tmp_path / "tree", tmp_path / "host"
    zone = tree / "sys/class/powercap/intel-rapl:0"
    for folder in (tree / "proc", tree / "new", tree / "sys/devices", tree / "sys/class/net"):
        folder.mkdir(parents=True)
    zone.mkdir(parents=True)
    records.mkdir()
    (zone / "name").write_text("package-0\n")
    (zone / "energy_uj").write_text("0\n")
    (zone / "max_energy_range_uj").write_text(f"{RANGE_UJ}\n")
    state = virtual_lab.cluster.state
    assert state.network is not None
    pid = virtual_lab.cluster.find_guest("v1").daemon.pid
    sampler = subprocess.Popen(
        [
            *(*state.network.enter(), "unshare", "--mount", "--propagation", "private"),
            *("sh", "-c", HOST, tree, METER),
            *(Layout(state.dir).lib_dir / "steelyard-node", "sample", "--root", tree),
            *("--record-dir", records, "--job-id", "v1", "--node", "host", "--rate", "5"),
            *("--process", str(pid)),
        ],
    )
    until(lambda: list(records.rglob("*.csv")), "the host's sampler has begun")
    yield records
    sampler.terminate()
    assert sampler.wait(60) == 0


def joined(lab: Lab, record: Path, records: Path, *options: str) -> dict[str, Any] | None:
    """Return the command's output; None while the host's samples do not reach the job's end."""
    words = ("join-host", str(record), str(records), "--json", "--idle-power", f"{IDLE_W:g}")
    done = lab.ours(*words, *options)
    assert done.returncode in (0, 3), done.stderr
    found: dict[str, Any] | None = json.loads(done.stdout) if done.returncode == 0 else None
    return found


def test_a_guests_job_beside_its_host(virtual_lab: Lab, host_records: Path, tmp_path: Path) -> None:
    state = virtual_lab.cluster.state
    assert state.network is not None
    listener = subprocess.Popen(
        [*state.network.enter(), "python3", "-c", LISTEN], stdout=subprocess.PIPE, text=True
    )
    assert listener.stdout is not None
    port = listener.stdout.readline().strip()
    words = ("python3", "-c", WORK, state.network.address("n1"), port, str(SENT_BYTES))
    done = virtual_lab.run("srun", "-w", "v1", *words)
    assert done.returncode == 0, done.stderr
    listener.communicate(timeout=60)
    folder = Layout(state.dir).record_dir / done.stdout.strip()
    record = until(lambda: next(ended(folder), None), "the guest's record has ended")
    picture = tmp_path / "power.png"
    found = until(
        lambda: joined(virtual_lab, record, host_records, "--figure", str(picture)),
        "the host's samples reach to the job's end",
    )
    seconds = found["end_unix_s"] - found["begin_unix_s"]
    host, guest, share = found["host"], found["guest"], found["share"]
    # The counter's law, by the host's own count of its processors' time. That is read once a second
    # and taken to grow evenly between: of two processors by at most half a second at each end off. The
    # counter itself may be 0.1 s old.
    law_j = IDLE_W * seconds + BUSY_W * host["node_cpu_s"]
    assert host["energy_j"] == pytest.approx(law_j, abs=BUSY_W * 1 + (IDLE_W + 2 * BUSY_W) * 0.2)
    # 1 s of work by the guest's clock, which does not know what its host gave to others meanwhile.
    assert 0.2 < host["cpu_s"] < host["node_cpu_s"] + 0.5
    assert guest["cpu_s"] >= 1
    # By the law the machine's joules; not more than all of them, whose processors' time is counted
    # in ticks. The counter is read a moment apart from these: by so much it is off the law.
    machine_j = BUSY_W * min(host["cpu_s"], host["node_cpu_s"])
    off_j = abs(host["energy_j"] - law_j)
    assert share["low_j"] - off_j <= machine_j <= share["high_j"] + off_j
    assert share["low_j"] > 0
    assert guest["tx_bytes"] > SENT_BYTES and guest["energy_j"] is None
    assert picture.read_bytes().startswith(b"\x89PNG")


def ended(folder: Path) -> Iterator[Path]:
    """The record of a job, once it has ended."""
    for path in folder.glob("v1.*.json"):
        if json.loads(path.read_bytes())["end_unix_s"] is not None:
            yield path
