"""A device of the node that is a container's alone (network=phys): who has it while the run lasts, what
goes by it, and how the node has it back."""

from __future__ import annotations

import contextlib
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

from .launcher_lab import OWN, ROOT, needs_root, out, processes, tags, told

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
        self.settings = Path("/proc/sys/net/ipv4/conf", self.name)
        (self.settings / "arp_ignore").write_text("3")

    def state(self) -> str:
        """up or down, and what was set for it; empty: this node does not have it."""
        line = ip("-oneline", "link", "show", "dev", self.name, check=False)
        if not line:
            return ""
        up = "UP" in line.partition("<")[2].partition(">")[0].split(",")
        return f"{'up' if up else 'down'} {(self.settings / 'arp_ignore').read_text().strip()}"

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
    assert not (study.run_folder / "local.1/result.json").exists() or study.result()["state"] == "started", errors(study)
    return (study.attempt() / "out.0").exists() and "sent" in out(study)


def errors(study: Study) -> str:
    return (study.attempt() / "err.0").read_text()


def across(kind: str, pair: Pair) -> dict[str, str]:
    return told(f"{kind},network=phys,device={pair.name},ranks=across")


def test_the_container_alone_has_it_and_the_node_has_it_back(
    study: Study, launcher: str, pair: Pair
) -> None:
    study.body(SEND)
    spaces = set(Path("/run/netns").glob("*"))
    before = pair.state()
    assert before == "up 3"
    with pair.listener() as listener:
        with study.start(**across(launcher, pair)) as child:
            wait_for("it has sent", partial(has_sent, study), seen=partial(errors, study))
            assert pair.state() == ""
            assert len(left(pair)) == 1
            (study.folder / "end").touch()
            assert child.wait(timeout=60) == 0, errors(study)
        assert listener.stdout is not None
        assert int(listener.stdout.readline()) == BYTES
    assert [line for line in out(study) if "device" in line] == ["device lo", f"device {pair.name}"]
    assert BYTES < pair.received_bytes() < 2 * BYTES
    assert (pair.state(), left(pair)) == (before, [])
    assert set(Path("/run/netns").glob("*")) == spaces
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
    keys["ipv4.address"] = "198.18.0.7/15"
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
    study.body("sleep 77.5" + OWN)
    with study.start(**across("unshare", pair)) as child:
        wait_for("it measures", lambda: processes("77.5" + OWN))
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=60) == 143
    assert (pair.state(), left(pair)) == ("down 3", [])
