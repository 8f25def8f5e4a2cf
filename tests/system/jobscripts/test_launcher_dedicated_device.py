"""A device of the node that only a container has (network=phys), and its return to the node.

Tests check which namespace has it during the run, and which packets it carries.
"""

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

from steelyard.wrappers.commands import cli

from .launcher_lab import CONF, OWN, ROOT, needs_root, out, processes, tags, told

if TYPE_CHECKING:
    from tests.system.jobscripts.conftest import Study

pytestmark = needs_root
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
        try:
            while data := peer.recv(65536):
                count += len(data)
                if count == {BYTES}:
                    peer.sendall(b"all\\n")
        except ConnectionError:
            pass  # who does not read that is gone
        print(count, flush=True)
"""


def ip(*words: str, check: bool = True) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=check, timeout=30)
    return done.stdout


class Pair:
    """A device of this node, and a listener behind its other end."""

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
        """Return the bytes at the other end's counter."""
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
    """Whether it has sent data; False if it ended before."""
    assert (
        not (study.run_folder / "local.1/result.json").exists()
        or study.result()["state"] == "started"
    ), errors(study)
    return (study.attempt() / "out.0").exists() and "sent" in out(study)


def errors(study: Study) -> str:
    return study.errors()


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
    """Run one container."""
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
    """It was the node's when the sampler began, and is read on wherever it is. The run ends when all
    has arrived: what the kernel sends after a run's end is not the run's."""
    send = (
        f"exec 3<>/dev/tcp/{PEER}/5001; head -c {BYTES} /dev/zero >&3; read -r -t 60 word <&3; "
        "[[ $word == all ]]"
    )
    words = ["run", "--in", f"{lxc_of_device},network=phys", "-o", str(tmp_path / "kept"), "--"]
    with pair.listener():
        assert cli.main([*words, "bash", "-c", send]) == 0, capsys.readouterr().err
    (record,) = (tmp_path / "kept/run-001").rglob("*.json")
    document = json.loads(record.read_bytes())
    devices = document["network"]["devices"]
    (sent_bytes,) = (one["tx_bytes"] for one in devices if one["name"] == pair.name)
    assert sent_bytes is not None, (devices, document["missing"], pair.state())
    assert BYTES < sent_bytes <= pair.received_bytes()


class Apart:
    """Runs with a private /run: no other run of this machine sweeps their leftovers."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.enter = ["nsenter", f"--target={pid}", "--mount", f"--wd={Path.cwd()}"]

    def start(self, study: Study, level: dict[str, str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*self.enter, *study.command()],
            env={**study.environment, **level},
            stderr=subprocess.DEVNULL,
        )

    def marks(self) -> str:
        return self.said("bash", "-c", "cat /run/steelyard-containers/steelyard-* 2>/dev/null || :")

    def swept(self) -> list[str]:
        return self.said(str(LEFT), "sweep").splitlines()

    def said(self, *words: str) -> str:
        done = subprocess.run(
            [*self.enter, *words], capture_output=True, text=True, check=True, timeout=60
        )
        return done.stdout

    def kill(self) -> None:
        """All of them, LXC's monitor, too; containers end with it."""
        mine = Path(f"/proc/{self.pid}/ns/mnt").readlink()
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (path / "ns/mnt").readlink() == mine and int(path.name) != self.pid:
                    os.kill(int(path.name), signal.SIGKILL)


@pytest.fixture
def apart() -> Iterator[Apart]:
    private = "mount --make-rprivate / && mount -t tmpfs tmpfs /run && mkdir /run/netns || exit"
    command = ["unshare", "--mount", "bash", "-c", f"{private}; echo ready; cat"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"ready\n"
        found = Apart(holder.pid)
        try:
            yield found
        finally:
            found.kill()
            holder.communicate()


@pytest.mark.parametrize("kind", ["unshare", "lxc"])
def test_a_killed_runs_device_is_given_back(
    request: pytest.FixtureRequest, study: Study, pair: Pair, apart: Apart, kind: str
) -> None:
    """With all that was started; that of a run that lives is not."""
    if kind == "lxc":
        level = told(f"{request.getfixturevalue('lxc_of_device')},network=phys")
    else:
        level = across(kind, pair)
    before = pair.state()
    study.body("sleep 66.5" + OWN)
    with apart.start(study, level):
        wait_for("it measures", lambda: processes("66.5" + OWN))
        assert apart.swept() == []
        apart.kill()
    wait_for("all of it is dead", lambda: not processes("66.5" + OWN))
    assert pair.state() == ""
    (line,) = (line for line in apart.swept() if pair.name in line)
    assert line.endswith(f" was killed and had the device {pair.name}: given back")
    assert (pair.state(), apart.marks()) == (before, "")


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


def test_a_device_that_cannot_come_back_stays_where_it_is(
    study: Study, pair: Pair, apart: Apart
) -> None:
    """Its name is taken: it goes with nobody's namespace, and comes when the name is free."""
    before = pair.state()
    study.body(SEND)
    with pair.listener(), apart.start(study, across("unshare", pair)) as child:
        wait_for("it has sent", partial(has_sent, study), seen=partial(errors, study))
        ip("link", "add", pair.name, "type", "bridge")
        (study.folder / "end").touch()
        assert child.wait(timeout=60) == 0, errors(study)
    try:
        assert f"device {pair.name} has not come back to " in errors(study)
        assert apart.swept() == []
        assert f" {pair.name} " in apart.marks()
    finally:
        ip("link", "delete", pair.name)
    assert pair.name in "".join(apart.swept())
    assert (pair.state(), apart.marks()) == (before, "")


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
