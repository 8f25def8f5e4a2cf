"""Virtual nodes of the throwaway cluster: real guests, and nothing of them left afterwards."""

from __future__ import annotations

import json
import os
import pwd
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.processes import each_process
from tests.throwaway_lab import LATE, Lab, is_late, is_whole, until

from steelyard.analysis.base.errors import MissingError
from steelyard.wrappers.cluster import cluster as throwaway
from steelyard.wrappers.cluster import daemons, guest_kvm
from steelyard.wrappers.cluster import network as virtual_network
from steelyard.wrappers.cluster.cluster_config import ClusterConfig, Layout, Network

KIND = "uml" if guest_kvm.missing_support() else "kvm"
IFF_NOARP = 0x80  # netdevice(7)
STEELYARD = (sys.executable, "-P", "-m", "steelyard.wrappers.commands.cli")


def node_program(lab: Lab) -> str:
    return str(Layout(lab.cluster.dir).lib_dir / "steelyard-node")


def test_probe_finds_the_guest_virtual_and_says_which(virtual_lab: Lab) -> None:
    done = virtual_lab.run("srun", "-w", "v1", node_program(virtual_lab), "probe")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["node_type"] == "virtual"
    found = said["virtualization"]
    assert (found["vm"]["name"], found["vm"]["confidence"]) == (KIND, "certain")
    assert found["container"]["name"] == "none"
    host = virtual_lab.run("srun", "-w", "n1", node_program(virtual_lab), "probe")
    assert json.loads(host.stdout)["machine_id"] != said["machine_id"], "machines of their own"


def test_one_job_over_host_and_guests(virtual_lab: Lab) -> None:
    done = virtual_lab.run("srun", "-N3", "sh", "-c", "echo $(hostname) $(uname -r)")
    assert done.returncode == 0, done.stderr
    kernels = dict(line.split() for line in done.stdout.splitlines())
    assert sorted(kernels) == ["n1", "v1", "v2"]
    assert kernels["v1"] == kernels["v2"] != kernels["n1"] == os.uname().release


def test_features_are_by_where_a_node_really_is(virtual_lab: Lab) -> None:
    done = virtual_lab.run("srun", "-N2", "-C", "virtual", "hostname")
    assert sorted(done.stdout.split()) == ["v1", "v2"], done.stderr
    done = virtual_lab.run("srun", "-C", "physical", "hostname")
    assert done.stdout.split() == ["n1"], done.stderr


def test_every_node_reaches_every_other_by_name(virtual_lab: Lab) -> None:
    script = "for node in n1 v1 v2; do ping -c3 -i.2 -W5 -q $node >/dev/null || echo no $node; done"
    done = virtual_lab.run("srun", "-N3", "sh", "-c", script)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_a_physical_nodes_jobs_see_the_clusters_network_only(virtual_lab: Lab) -> None:
    done = virtual_lab.run("srun", "-w", "n1", "ls", "/sys/class/net")
    assert {"br0", "eth0", "lo", "v1", "v2"} <= set(done.stdout.split())
    assert virtual_lab.cluster.state.network is not None
    assert virtual_lab.cluster.state.network.name not in done.stdout
    flags = virtual_lab.run("srun", "-w", "n1", "cat", "/sys/class/net/br0/flags")
    assert int(flags.stdout, 16) & IFF_NOARP, "only eth0 answers for n1's address"


def test_records_of_a_job_on_all_nodes_are_complete(virtual_lab: Lab) -> None:
    job = virtual_lab.sbatch(
        "-N3",
        script="srun sh -c 'dd if=/dev/zero of=x.$SLURM_PROCID bs=1M count=4; "
        "ping -c5 -i.2 -s1400 -q n1; sleep 1'",
    )
    virtual_lab.wait_state(job, "COMPLETED")
    records = virtual_lab.records(job, 3, complete=False)
    reasons = [record["incomplete_reason"] for record in records]
    assert all(is_whole(record, LATE) for record in records), reasons
    assert [record["node"] for record in records] == ["n1", "v1", "v2"]
    for record in records[1:]:
        assert 4 << 20 <= record["io"]["wchar_bytes"] < 5 << 20, record["io"]
        assert record["sampler"]["samples"] >= 5, record["sampler"]
        assert record["probe"]["virtualization"]["vm"]["name"] == KIND
    from_guests_bytes = 2 * 5 * 1400
    assert records[0]["network"]["rx_bytes"] > from_guests_bytes, "n1's uplink is counted"
    assert all(
        record["network"]["tx_bytes"] > 5 * 1400 for record in records[1:] if not is_late(record)
    )
    comment = virtual_lab.comment(
        job, by_plugin=True
    )  # of the first node, until `steelyard publish` has them all
    assert (comment["nodes"], comment["nodes_measured"], comment["partial"]) == (3, 1, True)
    assert [(virtual_lab.work / f"x.{rank}").stat().st_size for rank in range(3)] == [4 << 20] * 3


def test_an_ordinary_users_job_owns_what_it_makes(virtual_lab: Lab) -> None:
    home, nobody = virtual_lab.cluster.dir.parent / "home", pwd.getpwnam("nobody").pw_uid
    become = ("setpriv", f"--reuid={nobody}", "--clear-groups", "env", "HOME=/")
    script = f"mkdir {home}/made && echo text >{home}/made/file && chmod 600 {home}/made/file"
    done = virtual_lab.run(*become, "srun", "-D", str(home), "-w", "v1", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    made = home / "made" / "file"
    until(lambda: made.read_text() == "text\n", "the file's content is on the host")
    assert (made.parent.stat().st_uid, made.stat().st_uid) == (nobody, nobody)
    assert made.stat().st_mode & 0o777 == 0o600


def test_guests_share_a_network_file_system(virtual_lab: Lab) -> None:
    nobody = pwd.getpwnam("nobody").pw_uid
    become = ("setpriv", f"--reuid={nobody}", "--clear-groups", "env", "HOME=/")
    write = ("srun", "-D", "/", "-w", "v1", "sh", "-c", "umask 077; echo text >/nfs/file")
    done = virtual_lab.run(*become, *write)
    assert done.returncode == 0, done.stderr
    v2 = virtual_lab.cluster.find_guest("v2")
    assert v2.run(["cat", "/nfs/file"]).stdout == "text\n"
    assert v2.run(["stat", "-c", "%u %a", "/nfs/file"]).stdout == f"{nobody} 600\n"
    assert v2.run(["stat", "-f", "-c", "%T", "/nfs"]).stdout == "nfs\n"


def test_the_guests_kernel_has_netem_and_the_control_does_not_pass_it(virtual_lab: Lab) -> None:
    v1, v2 = virtual_lab.cluster.find_guest("v1"), virtual_lab.cluster.find_guest("v2")
    done = v1.run(["tc", "qdisc", "add", "dev", "vec0", "root", "netem", "delay", "50ms"])
    assert done.returncode == 0, done.stderr
    try:
        done = v1.run(["ping", "-c5", "-i0.2", "-q", v2.address])
        times = re.search(r"= ([\d.]+)/", done.stdout)
        assert times, done.stdout + done.stderr
        assert 50 <= float(times[1]) < 80
        v1.run(["tc", "qdisc", "change", "dev", "vec0", "root", "netem", "loss", "100%"])
        assert v1.run(["echo", "still", "here"]).stdout == "still here\n"
    finally:
        assert v1.run(["tc", "qdisc", "del", "dev", "vec0", "root"]).returncode == 0


def test_a_request_has_input_output_code_and_a_time_limit(virtual_lab: Lab) -> None:
    v1 = virtual_lab.cluster.find_guest("v1")
    done = v1.run(["sh", "-c", "cat; echo wrong >&2; exit 7"], text="line ' one\n")
    assert (done.returncode, done.stdout, done.stderr) == (7, "line ' one\n", "wrong\n")
    with pytest.raises(subprocess.TimeoutExpired):
        v1.run(["sleep", "30"], timeout_s=0.3)
    assert list((v1.dir / "requests").iterdir()) == []


def test_exec_and_console_are_commands(virtual_lab: Lab) -> None:
    done = virtual_lab.run(*STEELYARD, "cluster", "exec", "v2", "--", "hostname")
    assert (done.returncode, done.stdout) == (0, "v2\n"), done.stderr
    done = virtual_lab.run(*STEELYARD, "cluster", "exec", "v9", "--", "true")
    assert done.returncode == 2
    assert "'v9' is no guest of this cluster; there are: v1, v2, nfs" in done.stderr
    done = virtual_lab.run(*STEELYARD, "cluster", "console", "v1")
    assert "vec0" in done.stdout


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sylab-", dir="/tmp") as name:
        yield Path(name) / "c"
        throwaway.stop_cluster(Path(name) / "c")


def small(folder: Path) -> ClusterConfig:
    """The least cluster with a guest; without the plugin."""
    return ClusterConfig(dir=folder, physical_nodes=1, virtual_nodes=0, guests=1, memory_mb=384)


def assert_nothing_is_left(folder: Path, network: Network) -> None:
    """No process, namespace or device of the cluster, no memory file, no ~/.uml."""
    assert virtual_network.list_processes(network) == []
    assert not network.namespace.exists()
    assert not Path("/sys/class/net", network.name).exists()
    assert daemons.find_leftovers(Layout(folder).slurm_conf) == []
    mark = f"{folder}/".encode()
    assert not [pid for pid, words in each_process("cmdline") if mark in words]
    # Another cluster's guest that starts at this moment has one for an instant.
    until(lambda: not list(Path("/dev/shm").glob("vm_file*")), "a guest's memory has no name")
    assert not list(Path("~/.uml").expanduser().glob("v1*"))


def test_down_leaves_nothing_and_a_dead_guest_is_told(folder: Path) -> None:
    running = throwaway.start_cluster(small(folder))
    network, guest = running.state.network, running.find_guest("v1")
    assert network is not None
    os.kill(guest.daemon.pid, signal.SIGKILL)
    with pytest.raises(
        MissingError, match=r"(?s)guest v1 has died; its console says last:\n.*vec0"
    ):
        guest.run(["true"])
    until(lambda: throwaway.find_cluster(folder) is None, "the cluster is known to be broken")
    assert throwaway.stop_cluster(folder)
    assert_nothing_is_left(folder, network)


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_a_start_that_is_broken_off_leaves_nothing(folder: Path, sign: signal.Signals) -> None:
    line = (*STEELYARD, "cluster", "--dir", str(folder), "up")
    with subprocess.Popen([*line, "--virtual", "1", "--memory", "384", "--no-plugin"]) as starter:
        until(lambda: (folder / "guests" / "v1" / "console.log").exists(), "the guest starts")
        time.sleep(0.5)
        state = daemons.load_state(folder)
        assert state is not None
        assert state.network is not None
        starter.send_signal(sign)
        code_of_exit = starter.wait(timeout=30)
    assert code_of_exit == {signal.SIGINT: 130, signal.SIGKILL: -9}[sign]
    if sign == signal.SIGKILL:
        assert throwaway.stop_cluster(folder)
    assert_nothing_is_left(folder, state.network)
