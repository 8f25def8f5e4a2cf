"""The throwaway cluster's virtual nodes without starting any: configuration, network, refusals."""

from __future__ import annotations

import os
import re
import shutil
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import pytest

from steelyard.analysis.base.errors import MissingError, UsageError
from steelyard.wrappers.cluster import (
    cluster,
    cluster_config,
    daemons,
    guest_control,
    guest_kvm,
    guest_start,
    guest_uml,
)
from steelyard.wrappers.cluster import network as virtual_network
from steelyard.wrappers.cluster.cluster_config import ClusterConfig, Network, Ports
from steelyard.wrappers.cluster.daemons import Daemon, State
from steelyard.wrappers.cluster.guest_control import Guest
from steelyard.wrappers.commands import cli

NETWORK = Network("sy-4f1a", "10.79.26")
PORTS = Ports(20001, 20002, (20003, 20004, 20005), NETWORK)


@pytest.fixture
def config(tmp_path: Path) -> ClusterConfig:
    return ClusterConfig(
        dir=tmp_path / "c", physical_nodes=1, virtual_nodes=0, guests=2, cpus=4, memory_mb=256
    )


@pytest.fixture
def able(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine where virtual nodes can start, without KVM."""
    monkeypatch.setattr(guest_kvm, "missing_support", lambda: "there is no /dev/kvm")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name, path=None: f"/{name}")
    monkeypatch.setattr(guest_uml, "MODULES", Path("/"))
    monkeypatch.setattr(guest_start, "TUN", Path("/"))
    room = namedtuple("room", "free")(1 << 40)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: room)


def test_guests_have_addresses_of_their_own_and_one_cpu(config: ClusterConfig) -> None:
    text = cluster_config.slurm_conf(config, PORTS)
    nodes = re.findall(
        r"NodeName=(\S+) .*NodeAddr=(\S+) .*CPUs=(\d) RealMemory=\d+ Feature=(\S+)", text
    )
    assert nodes == [
        ("n1", "10.79.26.2", "4", "physical"),
        ("v1", "10.79.26.11", "1", "virtual"),
        ("v2", "10.79.26.12", "1", "virtual"),
    ]
    assert re.search(r"(?m)^SlurmctldHost=\S+\(10\.79\.26\.1\)$", text)
    assert "\nCommunicationParameters=NoCtldInAddrAny\n" in text, "srun listens for guests"
    assert "DbdAddr=127.0.0.1\n" in cluster_config.slurmdbd_conf(config, PORTS)


def test_the_nodes_know_each_other_by_name(config: ClusterConfig) -> None:
    text = cluster_config.hosts_file(config, NETWORK)
    assert text.startswith("127.0.0.1 localhost\n10.79.26.1 ")
    assert text.endswith("\n10.79.26.2 n1\n10.79.26.11 v1\n10.79.26.12 v2\n")
    with_server = cluster_config.hosts_file(replace(config, nfs=True), NETWORK)
    assert with_server == f"{text}10.79.26.10 nfs\n"


@pytest.mark.parametrize(
    ("proctrack", "version", "text"),
    [
        ("linuxproc", (22, 5), "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n"),
        ("linuxproc", (24, 11), "CgroupPlugin=disabled\n"),
        ("cgroup", (24, 11), "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n"),
    ],
)
def test_guests_have_a_cgroup_conf_of_their_own(
    proctrack: str, version: tuple[int, int], text: str
) -> None:
    assert cluster_config.guest_cgroup_conf(ClusterConfig(proctrack=proctrack), version) == text


def test_the_network_is_kept_in_the_state(tmp_path: Path) -> None:
    state = State(
        tmp_path, "boot", "22.05.8", ["n1", "v1"], False, network=NETWORK, guests=["v1"],
        daemons=[Daemon("guest.v1", 1, 2)],
    )  # fmt: skip
    state.save()
    assert daemons.load_state(tmp_path) == state


def test_a_network_that_a_route_leads_to_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    routes = '[{"dst":"default"},{"dst":"10.64.0.0/11"},{"dst":"10.96.1.7"},{"dst":"local"}]'
    routes = routes.replace(',{"dst":"local"}', ',{"dst":"10.100.0.0/14"}')
    monkeypatch.setattr(virtual_network, "_ip", lambda *_words: routes)
    for _ in range(50):
        network = virtual_network.choose_network()
        high, low = (int(part) for part in network.prefix.split(".")[1:])
        assert 96 <= high < 128, "10.64.0.0/11 is in use"
        assert not 100 <= high < 104
        assert network.name == f"sy-{high:02x}{low:02x}"
    monkeypatch.setattr(virtual_network, "_ip", lambda *_words: '[{"dst":"10.0.0.0/8"}]')
    with pytest.raises(MissingError, match=r"no free private network in 10\.64\.0\.0/10"):
        virtual_network.choose_network()


def test_virtual_nodes_need_root(config: ClusterConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(MissingError, match=r"need root .*without root: --virtual-feature"):
        cluster.check_config(config)
    cluster.check_config(ClusterConfig(dir=config.dir))


@pytest.mark.usefixtures("able")
def test_what_the_host_lacks_is_named(
    config: ClusterConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.check_config(config)
    room = namedtuple("room", "free")(511 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: room)
    with pytest.raises(MissingError, match=r"2 guests of 256 MB need 512 MB in /dev/shm, which h"):
        cluster.check_config(config)
    monkeypatch.setattr(guest_start, "TUN", Path("/none"))
    with pytest.raises(MissingError, match="need /none, not found here: modprobe tun"):
        cluster.check_config(config)
    monkeypatch.setattr(shutil, "which", lambda name, path=None: None)
    with pytest.raises(MissingError, match="--no-install-recommends iproute2 kmod user-mode-linux"):
        cluster.check_config(config)


@pytest.mark.usefixtures("able")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"guests": 101}, "at most 100 virtual nodes, not 101"),
        ({"guests": 0, "nfs": True}, "--nfs needs virtual nodes that mount it: --virtual N"),
        ({"memory_mb": 255}, "needs 256 MB of memory at least"),
        ({"shares": (Path("/"),)}, "--share '/' is not possible"),
        ({"shares": (Path("/proc/self"),)}, "guests have their own /, /proc"),
        ({"shares": (Path("/nonexistent"),)}, "'/nonexistent' is no folder"),
        ({"shares": (Path("usr"),)}, "'usr' is no folder"),
    ],
)
def test_a_shape_that_cannot_work_is_refused(
    config: ClusterConfig, change: dict[str, object], message: str
) -> None:
    wrong = replace(config, **change)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=message):
        cluster.check_config(wrong)


def test_shares_in_one_another_are_mounted_once_and_the_cluster_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("a", "a/b", "ab", "c/in")
    folders = [tmp_path / name for name in names]
    for folder in folders:
        folder.mkdir(parents=True)
    monkeypatch.setattr(guest_uml, "mount_type", lambda folder: f"as {folder.name}")
    found = guest_start.format_mounts(tmp_path / "c", folders)
    assert list(found.items()) == [
        (tmp_path / "a", "as a"),
        (tmp_path / "ab", "as ab"),
        (tmp_path / "c", "hostfs"),
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a folder away needs root")
def test_an_ordinary_users_folder_goes_through_bindfs(tmp_path: Path) -> None:
    assert guest_uml.mount_type(tmp_path) == "hostfs"
    shutil.chown(tmp_path, "nobody")
    assert guest_uml.mount_type(tmp_path) == "bindfs"


def test_the_guests_folder_has_all_that_its_first_process_reads(tmp_path: Path) -> None:
    (tmp_path / "guests").mkdir()
    guest_control.prepare_folders(
        tmp_path, ["v1"], {Path("/home/a b"): "bindfs", tmp_path: "hostfs"}
    )
    at = tmp_path / "guests" / "v1"
    assert (at / "shares").read_text() == f"bindfs /home/a b\nhostfs {tmp_path}\n"
    assert (at / "console").is_fifo()
    assert os.access(tmp_path / "guests" / "init.sh", os.X_OK)
    line = guest_uml.launch_line(tmp_path, "v1", NETWORK, 512)
    assert line[:2] == ["nsenter", "--net=/run/netns/sy-4f1a"]
    assert {"mem=512M", "SY_ADDRESS=10.79.26.11/24"} <= set(line)


def test_only_devices_of_the_clusters_own_network_may_be_shaped() -> None:
    """Without guests eth0 would be this machine's."""
    assert "devices lo eth0 vec* sy-* " in cluster_config.netem_conf(NETWORK)
    assert "devices lo vec* sy-* " in cluster_config.netem_conf(None)


def test_round_trips_are_measured_to_an_address_that_conditions_reach() -> None:
    """Not the controller's, which is never shaped; and no node's."""
    assert "\npeer 10.79.26.3\n" in cluster_config.netem_conf(NETWORK)
    assert "peer" not in cluster_config.netem_conf(None)
    others = {NETWORK.controller, *map(NETWORK.address, ("n1", "v1", "v2", "nfs"))}
    assert len(others | {NETWORK.peer}) == len(others) + 1


def test_a_crashed_kernel_is_told_at_once_by_its_reason_not_by_its_stack(tmp_path: Path) -> None:
    (tmp_path / "guests").mkdir()
    guest_control.prepare_folders(tmp_path, ["v1"], {})
    at = tmp_path / "guests" / "v1"
    (at / "console.log").write_text("oops\nKernel panic - not syncing: why\nCPU: 0\n" + "s\n" * 50)
    guest = Guest("v1", "10.79.26.11", at, Daemon("guest.v1", os.getpid(), 0))
    with pytest.raises(MissingError, match=r"v1 has crashed.*\n.*oops\n.*syncing: why\n  all of"):
        guest.is_ready()


def test_a_request_to_a_dead_guest_says_so_with_the_consoles_end(tmp_path: Path) -> None:
    (tmp_path / "guests").mkdir()
    guest_control.prepare_folders(tmp_path, ["v1"], {})
    at = tmp_path / "guests" / "v1"
    (at / "console.log").write_text("x\n" * 50 + "Kernel panic - not syncing\n")
    guest = Guest("v1", "10.79.26.11", at, Daemon("guest.v1", os.getpid(), 0))
    with pytest.raises(MissingError, match=r"(?s)guest v1 has died; .*Kernel panic") as caught:
        guest.run(["true"])
    assert str(caught.value).count("\n    x") == 11
    assert list((at / "requests").iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["exec", "v1"], "expected: steelyard cluster exec NODE -- COMMAND"),
        (["console"], "expected: steelyard cluster console NODE"),
        (["down", "v1"], "'down' takes no 'v1'"),
    ],
)
def test_wrong_words_are_told(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["cluster", "--dir", str(tmp_path / "c"), *words]) == 2
    assert message in capsys.readouterr().err
