"""A device of the node that is a container's alone (network=phys): who has it while the run lasts, what
goes by it, and how the node has it back."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.waiting import wait_for

from steelyard.jobscripts import registry
from steelyard.wrappers.commands import cli

from .launcher_lab import CONF, OWN, ROOT, needs_root, out, processes, tags, told

if TYPE_CHECKING:
    from tests.unit.jobscripts.conftest import Study

pytestmark = [pytest.mark.slow, needs_root]
LEFT = ROOT / "build/bin/steelyard-left"
MARKS = Path("/run/steelyard-containers")
PEER = "198.19.255.250"  # in the network of RFC 2544, and none of ours: blocks end before
BYTES = 300_000
# What is inside: its devices; so many bytes for the other end; then it waits until it may end.
SEND = f"""
while IFS=': ' read -r name rest; do
    [[ $rest == *'|'* ]] || printf 'device %s\\n' "$name"
done </proc/net/dev
head -c {BYTES} /dev/zero >/dev/tcp/{PEER}/5001 && echo sent
until [[ -e $SY_STUDY_DIR/end ]]; do sleep 0.1; done
"""
LISTEN = f"""
import socket
with socket.create_server(("{PEER}", 5001)) as server:
    print("ready", flush=True)
    while True:
        peer, _ = server.accept()
        count = 0
        while data := peer.recv(65536):
            count += len(data)
        print(count, flush=True)
"""


def ip(*words: str, check: bool = True) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=check, timeout=30)
    return done.stdout


class Pair:
    """A device of this node, and behind its other end somebody who listens."""

    def __init__(self) -> None:
        self.name = f"sd{os.getpid()}a"
        self.there = f"steelyard-test-{os.getpid()}"
        ip("link", "add", self.name, "type", "veth", "peer", "name", "peer", "netns", self.there)
        ip("-netns", self.there, "address", "add", f"{PEER}/15", "dev", "peer")
        ip("-netns", self.there, "link", "set", "peer", "up")
        ip("link", "set", self.name, "up")
        ip("link", "set", self.name, "mtu", "1490")
        self.settings = Path("/proc/sys/net/ipv4/conf", self.name)
        (self.settings / "arp_ignore").write_text("3")

    def state(self) -> str:
        """up or down, its MTU and address, what was set for it; empty: this node does not have it."""
        line = ip("-oneline", "link", "show", "dev", self.name, check=False)
        if not line:
            return ""
        up = "UP" in line.partition("<")[2].partition(">")[0].split(",")
        words = line.split()
        mtu, address = (words[words.index(key) + 1] for key in ("mtu", "link/ether"))
        setting = (self.settings / "arp_ignore").read_text().strip()
        return f"{'up' if up else 'down'} {mtu} {address} {setting}"

    def received_bytes(self) -> int:
        """By the other end's counter."""
        words = ip("-netns", self.there, "-statistics", "link", "show", "dev", "peer").split()
        return int(words[words.index("RX:") + 7])

    @contextlib.contextmanager
    def listener(self) -> Iterator[subprocess.Popen[str]]:
        words = ["ip", "netns", "exec", self.there, "python3", "-c", LISTEN]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            try:
                yield child
            finally:
                child.terminate()


@pytest.fixture
def pair() -> Iterator[Pair]:
    there = f"steelyard-test-{os.getpid()}"
    ip("netns", "add", there)
    try:
        yield Pair()
    finally:
        ip("-netns", there, "link", "delete", "peer", check=False)
        ip("netns", "delete", there)


def left(pair: Pair) -> list[str]:
    """What names the device among marks, and namespaces of the runs that did."""
    return [str(mark) for mark in MARKS.glob("steelyard-*") if f" {pair.name} " in mark.read_text()]


def has_sent(study: Study) -> bool:
    """Not when it has ended before."""
    assert (
        not (study.run_folder / "local.1/result.json").exists()
        or study.result()["state"] == "started"
    ), errors(study)
    return (study.attempt() / "out.0").exists() and "sent" in out(study)


def errors(study: Study) -> str:
    return (study.attempt() / "err.0").read_text()


def across(kind: str, pair: Pair) -> dict[str, str]:
    return told(f"{kind},network=phys,device={pair.name},ranks=across")


def test_the_container_alone_has_it_and_the_node_has_it_back(
    study: Study, launcher: str, pair: Pair
) -> None:
    one_run(study, launcher, pair)


def test_podmans_too(study: Study, pair: Pair, image_tar: Path, tmp_path: Path) -> None:
    if shutil.which("podman") is None:
        pytest.skip("podman is not on this machine: apt install podman")
    name = f"localhost/steelyard-device-{os.getpid()}:1"
    conf = tmp_path / "containers.conf"
    conf.write_text(CONF + 'runtime = "runc"\n')
    environment = {**os.environ, "CONTAINERS_CONF": str(conf)}
    words = ["podman", "import", str(image_tar), name]
    subprocess.run(words, env=environment, check=True, timeout=60)
    try:
        one_run(study, f"podman:{name}", pair, CONTAINERS_CONF=str(conf))
    finally:
        words = ["podman", "rmi", "--force", name]
        subprocess.run(words, env=environment, check=True, timeout=60)


def one_run(study: Study, launcher: str, pair: Pair, **environment: str) -> None:
    """Of one container."""
    study.body(SEND)
    before = pair.state()
    assert before.startswith("up 1490 ") and before.endswith(" 3")
    with pair.listener() as listener:
        with study.start(**across(launcher, pair), **environment) as child:
            wait_for("it has sent", partial(has_sent, study), seen=partial(errors, study))
            assert pair.state() == ""
            (mark,) = left(pair)
            assert Path("/run/netns", Path(mark).name).exists()
            (study.folder / "end").touch()
            assert child.wait(timeout=60) == 0, errors(study)
        assert listener.stdout is not None
        assert int(listener.stdout.readline()) == BYTES
    assert [line for line in out(study) if "device" in line] == ["device lo", f"device {pair.name}"]
    assert BYTES < pair.received_bytes() < 2 * BYTES
    assert (pair.state(), left(pair)) == (before, [])
    assert not Path("/run/netns", Path(mark).name).exists()
    noted = tags(study)
    assert noted["launcher_device"] == pair.name
    assert noted["launcher_addresses"].startswith(("198.18.", "198.19."))


@pytest.fixture
def lxc_of_device(lxc: str, pair: Pair) -> Iterator[str]:
    """By its configuration, under another name."""
    base = subprocess.run(["lxc-config", "lxc.lxcpath"], capture_output=True, text=True, check=True)
    config = Path(base.stdout.strip()) / lxc.partition(":")[2] / "config"
    before = config.read_text()
    keys = {"type": "phys", "link": pair.name, "name": "mine0", "flags": "up"}
    keys |= {"ipv4.address": "198.18.0.7/15", "hwaddr": "02:00:00:00:00:07", "mtu": "1400"}
    config.write_text(before + "".join(f"lxc.net.0.{k} = {v}\n" for k, v in keys.items()))
    yield lxc
    config.write_text(before)


def test_lxcs_is_what_its_configuration_says(study: Study, pair: Pair, lxc_of_device: str) -> None:
    study.body(SEND)
    before = pair.state()
    with pair.listener() as listener:
        with study.start(**told(f"{lxc_of_device},network=phys")) as child:
            wait_for("it has sent", partial(has_sent, study), seen=partial(errors, study))
            assert pair.state() == ""
            (study.folder / "end").touch()
            assert child.wait(timeout=60) == 0, errors(study)
        assert listener.stdout is not None
        assert int(listener.stdout.readline()) == BYTES
    assert [line for line in out(study) if "device" in line] == ["device lo", "device mine0"]
    assert (pair.state(), left(pair)) == (before, [])
    assert tags(study)["launcher_device"] == pair.name


def test_what_goes_by_it_is_in_the_record(
    tmp_path: Path, pair: Pair, lxc_of_device: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was the node's when the sampler began, and is read on wherever it is."""
    send = f"head -c {BYTES} /dev/zero >/dev/tcp/{PEER}/5001"
    words = ["run", "--in", f"{lxc_of_device},network=phys", "-o", str(tmp_path / "kept"), "--"]
    with pair.listener():
        assert cli.main([*words, "bash", "-c", send]) == 0, capsys.readouterr().err
    (record,) = (tmp_path / "kept/run-001").rglob("*.json")
    devices = json.loads(record.read_bytes())["network"]["devices"]
    (sent_bytes,) = (one["tx_bytes"] for one in devices if one["name"] == pair.name)
    assert BYTES < sent_bytes <= pair.received_bytes()


@pytest.mark.parametrize("kind", ["unshare", "lxc"])
def test_a_killed_runs_device_is_given_back(
    request: pytest.FixtureRequest, study: Study, pair: Pair, kind: str
) -> None:
    """With all that was started; that of a run that lives is not."""
    if kind == "lxc":
        level = told(f"{request.getfixturevalue('lxc_of_device')},network=phys")
    else:
        level = across(kind, pair)
    before = pair.state()
    study.body("sleep 66.5" + OWN)
    with study.start(**level) as child:
        wait_for("it measures", lambda: processes("66.5" + OWN))
        assert swept(pair) == []
        os.killpg(child.pid, signal.SIGKILL)
    wait_for("all of it is dead", lambda: not processes("66.5" + OWN))
    assert pair.state() == ""
    (line,) = wait_for("it is given back", lambda: swept(pair))
    assert line.endswith(f" was killed and had the device {pair.name}: given back")
    assert (pair.state(), left(pair)) == (before, [])


def swept(pair: Pair) -> list[str]:
    """What steelyard-left tells of it."""
    words = [str(LEFT), "sweep"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    return [line for line in done.stdout.splitlines() if pair.name in line]


def test_a_stopped_runs_device_is_given_back_down_as_it_was(study: Study, pair: Pair) -> None:
    ip("link", "set", pair.name, "down")
    before = pair.state()
    assert before.startswith("down ")
    study.body("sleep 77.5" + OWN)
    with study.start(**across("unshare", pair)) as child:
        wait_for("it measures", lambda: processes("77.5" + OWN))
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=60) == 143
    assert (pair.state(), left(pair)) == (before, [])


def test_a_device_that_cannot_come_back_stays_where_it_is(study: Study, pair: Pair) -> None:
    """Its name is taken: it goes with nobody's namespace, and comes when the name is free."""
    before = pair.state()
    study.body(SEND)
    with pair.listener(), study.start(**across("unshare", pair)) as child:
        wait_for("it has sent", partial(has_sent, study), seen=partial(errors, study))
        ip("link", "add", pair.name, "type", "bridge")
        (study.folder / "end").touch()
        assert child.wait(timeout=60) == 0, errors(study)
    try:
        assert f"device {pair.name} has not come back to " in errors(study)
        assert swept(pair) == []
        assert len(left(pair)) == 1
    finally:
        ip("link", "delete", pair.name)
    assert len(swept(pair)) == 1
    assert (pair.state(), left(pair)) == (before, [])


# --- what is not moved ---

# In a network of its own, whose devices /sys shows.
ALONE = """
mount --make-rprivate / && mount -t sysfs sysfs /sys && ip link set lo up || exit
ip link add d0 type veth peer name d1 && ip link set d1 up && ip link set d0 up || exit
. "$1"
SY_THIS_NODE=n1 SY_LAUNCHER=level SY_LEFT=$2 SY_LAUNCHER_NAME=steelyard-1-1
sy_tag() { printf 'tag %s\n' "$*"; }
eval "$3"
sy_left_locked sy_device_claim "$4"
code=$?
cat "$2"/steelyard-1-1
exit "$code"
"""


def claimed(folder: Path, setup: str, device: str) -> subprocess.CompletedProcess[str]:
    """As a run does it before it moves the device."""
    library = folder / "steelyard.sh"
    library.write_text(registry.library(), encoding="utf-8")
    (folder / "marks").mkdir()
    words = ["bash", "-c", ALONE, "-", str(library), str(folder / "marks"), setup, device]
    return subprocess.run(
        ["unshare", "--net", "--mount", *words],
        capture_output=True, text=True, check=False, timeout=60, env={"PATH": os.environ["PATH"]},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("setup", "device", "why"),
    [
        (":", "d7", "n1 has no device d7: expected one of d1, d0"),
        (":", "lo", "lo is the loopback device of n1: name another"),
        (":", "d 0", "'d 0' is no name of a network device"),
        (":", "", "'' is no name of a network device"),
        ("ip link property add dev d0 altname other", "other", "n1 has no device other: expected"),
        ("ip address add 10.9.0.1/24 dev d0", "d0", "itself uses its device d0 (the address 10.9.0.1/24)"),
        ("ip address add fd00::1/64 dev d0", "d0", "(the address fd00::1/64), which would cut it off"),
        ("ip route add 10.9.0.0/24 dev d0", "d0", "(the route 10.9.0.0/24 scope link)"),
        ("ip route add 10.9.0.0/24 dev d0 table 7", "d0", "(the route 10.9.0.0/24 table 7 scope link)"),
        ("ip -6 route add fd00::/64 dev d0", "d0", "(the route fd00::/64 metric 1024 pref medium)"),
        ("ip link add b0 type bridge; ip link set d0 master b0", "d0",
         "device d0 of n1 belongs to b0: name another, or say ip link set d0 nomaster"),
        ("ip link add m0 link d0 type macvlan", "d0", "(the device m0 on top of it)"),
        ("tc qdisc add dev d0 root handle 57e1: pfifo", "d0", "(the queue pfifo 57e1:)"),
        ("tc qdisc add dev d0 clsact", "d0", "(the queue clsact ffff:)"),
        ("SY_LAUNCHER_NAME=steelyard-12-34 sy_left_mark phys 'steelyard-12-34 d0 7 up,1500,'", "d0",
         "device d0 of n1 is in the container of another run (process "),
    ],
)  # fmt: skip
def test_what_the_node_uses_is_not_moved(tmp_path: Path, setup: str, device: str, why: str) -> None:
    done = claimed(tmp_path, f"{setup} || exit 99", device)
    assert done.returncode == 4, done.stderr
    assert done.stderr.splitlines()[-2].startswith("steelyard: level: ")
    assert why in done.stderr
    assert done.stdout == ""  # neither tagged nor marked


def test_what_is_moved_is_noted_before(tmp_path: Path) -> None:
    """Addresses that IPv6 gives by itself are nobody's; settings that are the node's own are not its."""
    setup = """ip link set d0 address 02:00:00:00:00:09; cd /proc/sys/net || exit 99
        echo 1 >ipv4/conf/d0/arp_ignore; echo 0 >ipv6/conf/d0/accept_ra
        echo 77 >ipv4/neigh/d0/delay_first_probe_time
        until [[ $(ip -6 address show dev d0) == *fe80:* ]]; do sleep 0.1; done"""
    done = claimed(tmp_path, setup, "d0")
    assert done.returncode == 0, done.stderr
    tag, owner, network, line = done.stdout.splitlines()
    assert (tag, owner.split()[0], network.split()[0]) == (
        "tag launcher_device d0",
        "owner",
        "network",
    )
    words = line.split()
    assert (words[:3], words[4]) == (["phys", "steelyard-1-1", "d0"], "up,1500,02:00:00:00:00:09")
    assert {"ipv4/conf/d0/arp_ignore=1", "ipv6/conf/d0/accept_ra=0"} < set(words[5:])
    assert "ipv4/neigh/d0/delay_first_probe_time=77" in words[5:]


def test_a_run_that_is_refused_leaves_the_device_as_it_is(study: Study, pair: Pair) -> None:
    ip("address", "add", "10.215.9.1/24", "dev", pair.name)
    before = ip("-4", "address", "show", "dev", pair.name)
    study.body("true")
    assert study.run(**across("unshare", pair)).returncode == 1
    assert (
        f"itself uses its device {pair.name} (the address 10.215.9.1/24)"
        in study.result()["reason"]
    )
    assert (ip("-4", "address", "show", "dev", pair.name), left(pair)) == (before, [])


def test_a_device_without_a_link_is_no_run(study: Study, pair: Pair) -> None:
    ip("-netns", pair.there, "link", "set", "peer", "down")
    before = pair.state()
    study.body("true")
    assert study.run(SY_DEVICE_LINK_S="1", **across("unshare", pair)).returncode == 1
    assert f"device {pair.name} of " in study.result()["reason"]
    assert "has no link: is it plugged in, and the other end up?" in study.result()["reason"]
    assert (pair.state(), left(pair)) == (before, [])
