"""Virtual nodes by QEMU: the way that a machine with KVM takes, here with the processor emulated in
software, so that any machine can try it. Only the accelerator differs."""

from __future__ import annotations

import json
import os
import pwd
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.guests.nodes.test_virtual import assert_nothing_is_left
from tests.throwaway_lab import Lab, until

from steelyard.wrappers.cluster import cluster as throwaway
from steelyard.wrappers.cluster import daemons, guest_kvm
from steelyard.wrappers.cluster.cluster_config import ClusterConfig, Layout

ROOT = Path(__file__).resolve().parents[3]
KERNELS = Path("/var/tmp/steelyard-kernels")  # fetched once
FETCH_S, START_S = 600, 400


def fetched() -> guest_kvm.Kernel:
    """Debian 12's for clouds, wherever this machine has its own."""
    folder = KERNELS / "cloud"
    if not (folder / "lib/modules").is_dir():
        (folder / "lib").mkdir(parents=True, exist_ok=True)
        (folder / "vmlinuz").unlink(missing_ok=True)
        fetch = (ROOT / "tests/guests/kernels/kernel.sh", "bookworm", folder / "vmlinuz")
        subprocess.run([*fetch, folder / "lib/modules"], check=True, timeout=FETCH_S)
    (modules,) = (folder / "lib/modules").iterdir()
    return guest_kvm.Kernel(modules.name, folder / "vmlinuz", folder)


@pytest.fixture(scope="module")
def emulated() -> Iterator[pytest.MonkeyPatch]:
    """As on a machine with KVM, at a twentieth of its pace."""
    kernel = fetched()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guest_kvm, "ACCELERATOR", ("-accel", "tcg", "-cpu", "max"))
        patch.setattr(guest_kvm, "missing_support", lambda: "")
        patch.setattr(guest_kvm, "find_kernel", lambda: kernel)
        patch.setattr(daemons, "START_LIMIT_S", START_S)
        yield patch


@pytest.fixture(scope="module")
def cluster(emulated: pytest.MonkeyPatch) -> Iterator[throwaway.Cluster]:
    """Start a host node, a guest and a file server; `nobody` owns a folder `home` with them."""
    del emulated
    plugin, node_program = throwaway.find_plugin()
    with tempfile.TemporaryDirectory(prefix="sykvm-", dir="/tmp") as folder:
        at, home = Path(folder), Path(folder) / "home"
        home.mkdir()
        at.chmod(0o711)
        os.chown(home, pwd.getpwnam("nobody").pw_uid, -1)
        config = ClusterConfig(
            dir=at / "c", physical_nodes=1, virtual_nodes=0, guests=1, nfs=True, shares=(home,),
            plugin=plugin, node_program=node_program, sample_rate_hz=10, bpf=False,
        )  # fmt: skip
        with throwaway.start_cluster(config) as running:
            network = running.state.network
            yield running
        assert network is not None
        assert_nothing_is_left(at / "c", network)


@pytest.fixture
def lab(cluster: throwaway.Cluster) -> Lab:
    return Lab(cluster, cluster.dir.parent)


def test_a_job_over_the_host_and_the_guest(lab: Lab) -> None:
    done = lab.run("srun", "-N2", "sh", "-c", "echo $(hostname) $(uname -r)")
    kernels = dict(line.split() for line in done.stdout.splitlines())
    assert kernels == {"n1": os.uname().release, "v1": guest_kvm.find_kernel().release}, done.stderr


def test_the_record_says_which_machine_it_was(lab: Lab) -> None:
    job = lab.sbatch("-w", "v1", "-D", str(lab.cluster.dir / "log"), script="ping -c3 -q n1")
    lab.wait_state(job, "COMPLETED")
    (record,) = lab.records(job, 1, complete=False)
    assert record["probe"]["node_type"] == "virtual"
    assert record["probe"]["virtualization"]["vm"]["name"] == "qemu"
    assert record["network"]["tx_bytes"] > 0


def test_a_jobs_files_belong_to_who_made_them(lab: Lab) -> None:
    home, nobody = lab.cluster.dir.parent / "home", pwd.getpwnam("nobody").pw_uid
    become = ("setpriv", f"--reuid={nobody}", "--clear-groups", "env", "HOME=/")
    script = f"umask 077; mkdir {home}/made; echo text >{home}/made/file"
    done = lab.run(*become, "srun", "-D", str(home), "-w", "v1", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    file = home / "made/file"
    assert (file.read_text(), file.stat().st_uid, file.stat().st_mode & 0o777) == (
        "text\n", nobody, 0o600,
    )  # fmt: skip
    assert file.parent.stat().st_uid == nobody


def test_host_and_guest_see_what_the_other_writes(lab: Lab) -> None:
    guest, file = lab.cluster.find_guest("v1"), lab.cluster.dir / "log" / "both"
    for number in range(3):
        file.write_text("x" * number)
        assert guest.run(["cat", str(file)]).stdout == "x" * number
        guest.run(["sh", "-c", f"printf y >>{file}"])
        assert file.read_text() == "x" * number + "y"


def test_a_program_in_a_share_runs_and_a_file_can_be_mapped(lab: Lab) -> None:
    guest, file = lab.cluster.find_guest("v1"), lab.cluster.dir / "log" / "mapped"
    script = (
        "import mmap\n"
        f"with open({str(file)!r}, 'w+b') as f:\n"
        "    f.truncate(4096)\n"
        "    mmap.mmap(f.fileno(), 4096)[:2] = b'ok'\n"
    )
    assert guest.run(["python3", "-c", script]).stderr == ""
    until(lambda: file.read_bytes()[:2] == b"ok", "the host has what was mapped")
    program = Layout(lab.cluster.dir).lib_dir / "steelyard-node"
    done = guest.run([str(program), "probe"])
    assert json.loads(done.stdout)["node_type"] == "virtual", done.stderr


def test_the_host_cannot_be_changed_past_the_shares(lab: Lab) -> None:
    guest = lab.cluster.find_guest("v1")
    assert guest.run(["sh", "-c", "echo x >/etc/made-in-guest"]).returncode == 0
    assert not Path("/etc/made-in-guest").exists()


def test_netem_delays_and_the_file_server_answers(lab: Lab) -> None:
    guest = lab.cluster.find_guest("v1")
    done = guest.run(["tc", "qdisc", "add", "dev", "vec0", "root", "netem", "delay", "50ms"])
    assert done.returncode == 0, done.stderr
    said = guest.run(["ping", "-c5", "-i0.2", "-q", "nfs"]).stdout
    assert guest.run(["tc", "qdisc", "del", "dev", "vec0", "root"]).returncode == 0
    times = re.search(r"= ([\d.]+)/", said)
    assert times and 50 <= float(times[1]) < 80, said
    for folder in ("/nfs", "/nfs3"):
        assert guest.run(["sh", "-c", f"echo {folder} >{folder}/file"]).returncode == 0
    assert lab.cluster.find_guest("nfs").run(["cat", "/srv/nfs/file"]).stdout == "/nfs3\n"
