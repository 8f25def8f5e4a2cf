"""Captures of packets between two network namespaces made for it, by the real dumpcap."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.throwaway_lab import command_line, until

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = os.environ.get("STEELYARD_NODE") or str(ROOT / "build" / "bin" / "steelyard-node")
SEND = """
import socket, sys
for port in sys.argv[2].split(","):
    for _ in range(int(sys.argv[3])):
        s = socket.socket()
        s.settimeout(0.5)
        s.connect_ex((sys.argv[1], int(port)))
        s.close()
"""

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and captures need root"),
    pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed"),
]


def sh(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


@dataclass
class Wire:
    """Two namespaces with a device `wire` each, 10.9.0.1 and 10.9.0.2."""

    here: str
    there: str

    def within(self, *words: str) -> list[str]:
        return ["nsenter", f"--net=/run/netns/{self.here}", *words]

    def send(self, ports: str, count: int = 5, to: str = "10.9.0.2") -> None:
        sh(*self.within("python3", "-c", SEND, to, ports, str(count)))


@pytest.fixture(name="wire")
def make_wire() -> Iterator[Wire]:
    wire = Wire(f"sy-verify-{os.getpid()}-a", f"sy-verify-{os.getpid()}-b")
    try:
        for name in (wire.here, wire.there):
            sh("ip", "netns", "add", name)
        sh("ip", "-n", wire.here, "link", "add", "wire", "type", "veth",
           "peer", "name", "wire", "netns", wire.there)  # fmt: skip
        for name, last in ((wire.here, 1), (wire.there, 2)):
            for net in (9, 10):
                sh("ip", "-n", name, "address", "add", f"10.{net}.0.{last}/24", "dev", "wire")
            sh("ip", "-n", name, "link", "set", "wire", "up")
        yield wire
    finally:
        for name in (wire.here, wire.there):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


@dataclass
class Capture:
    """A capture of job 7 on node n1 that goes on."""

    process: subprocess.Popen[str]
    first: dict[str, object]
    folder: Path
    run_dir: Path

    @property
    def file(self) -> Path:
        return self.folder / "7" / str(self.first["file"])

    def state(self, ending: str) -> Path:
        return self.run_dir / "capture" / f"n1.7.{ending}"

    def end(self, send: signal.Signals | None = signal.SIGTERM) -> dict[str, object]:
        if send:
            self.process.send_signal(send)
        assert self.process.wait(60) == 0
        assert not self.state("json").exists()
        done: dict[str, object] = json.loads(self.state("done.json").read_text())
        return done

    def packets(self, *fields: str) -> list[list[str]]:
        words = [word for field in fields for word in ("-e", field)]
        table = sh("tshark", "-n", "-r", str(self.file), "-T", "fields", *words)
        return [line.split("\t") for line in table.splitlines()]

    def ports(self) -> set[str]:
        return {port for row in self.packets("tcp.dstport", "tcp.srcport") for port in row}


class Starter:
    """Starts captures on a wire; what still runs is ended by `close`."""

    def __init__(self, wire: Wire, folder: Path) -> None:
        self.wire, self.folder, self.running = wire, folder, list[Capture]()
        (folder / "records").mkdir()

    def command(self, *options: str) -> list[str]:
        return [
            PROGRAM, "capture", f"--record-dir={self.folder / 'records'}",
            f"--run-dir={self.folder / 'run'}", "--node=n1", "--job-id=7", *options,
        ]  # fmt: skip

    def __call__(self, *options: str) -> Capture:
        process = subprocess.Popen(
            self.wire.within(*self.command("--no-policy", "--device=wire", *options)),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        out, said = self.answer(process)
        assert out, said
        found = Capture(process, json.loads(out), self.folder / "records", self.folder / "run")
        self.running.append(found)
        return found

    @staticmethod
    def answer(process: subprocess.Popen[str]) -> tuple[str, str]:
        """What was said until both streams were closed, the program going on."""
        assert process.stdout and process.stderr
        with process.stdout as out, process.stderr as said:
            return out.read(), said.read()

    def close(self) -> None:
        for capture in self.running:
            capture.process.kill()
            capture.process.wait()


@pytest.fixture(name="start")
def make_starter(wire: Wire, tmp_path: Path) -> Iterator[Starter]:
    starter = Starter(wire, tmp_path)
    yield starter
    starter.close()


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


def test_headers_are_recorded_and_belong_to_the_user(start: Starter, wire: Wire) -> None:
    capture = start("--owner=4711:4712")
    assert capture.state("json").exists()
    wire.send("1094", 5)
    done = capture.end()
    assert done["file"] == capture.file.name and done["truncated"] is False
    info = capture.file.stat()
    assert (info.st_uid, info.st_gid, info.st_mode & 0o777) == (4711, 4712, 0o400)
    assert done["bytes"] == info.st_size and done["dropped_packets"] == 0
    segments = [row for row in capture.packets("tcp.dstport") if row != [""]]
    assert len(segments) == 10  # SYN and RST, five times; beside them what IPv6 says by itself
    assert sh("capinfos", "-T", "-r", "-t", str(capture.file)).split("\t")[1].strip() == "pcapng"


def test_ssh_and_protected_networks_are_left_out(start: Starter, wire: Wire) -> None:
    capture = start("--protect=10.10.0.0/24")
    wire.send("22,1094")
    wire.send("2049", to="10.10.0.2")
    capture.end()
    ports = capture.ports()
    assert "1094" in ports
    assert not ports & {"22", "2049"}


def test_only_the_networks_asked_for(start: Starter, wire: Wire) -> None:
    capture = start("--filter-to=10.10.0.0/24")
    wire.send("1094")
    wire.send("2049", to="10.10.0.2")
    done = capture.end()
    assert "2049" in capture.ports() and "1094" not in capture.ports()
    assert done["filter"] == "(ip or ip6) and not tcp port 22 and (net 10.10.0.0/24)"


def test_payload_is_cut_off(start: Starter, wire: Wire) -> None:
    capture = start()
    sh(*wire.within("python3", "-c",
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"
        ".sendto(b'x' * 1000, ('10.9.0.2', 9))"))  # fmt: skip
    capture.end()
    rows = capture.packets("frame.len", "frame.cap_len", "udp.dstport")
    assert ["1042", "128", "9"] in rows


def test_a_full_file_is_the_end_and_said(start: Starter, wire: Wire) -> None:
    capture = start("--max-bytes=10000")
    wire.send("1094", 200)
    done = capture.end(send=None)
    assert done["truncated"] is True
    assert 10000 <= capture.file.stat().st_size < 20000


def test_it_ends_with_the_watched_process(start: Starter, wire: Wire) -> None:
    with subprocess.Popen(["sleep", "60"]) as job:
        capture = start(f"--watch={job.pid}")
        assert capture.process.poll() is None
        job.kill()
        job.wait()
        assert capture.end(send=None)["truncated"] is False


def test_dumpcap_has_no_rights_and_dies_with_its_parent(start: Starter) -> None:
    capture = start()
    (dumpcap,) = children(capture.process.pid)
    status = Path(f"/proc/{dumpcap}/status").read_text()
    assert "\nUid:\t65534\t65534\t65534\t65534\n" in status
    assert "\nCapEff:\t0000000000000000\n" in status
    capture.process.kill()
    capture.process.wait()
    until(lambda: command_line(dumpcap) == "", "dumpcap has ended")


def refused(words: list[str]) -> tuple[int, str, str]:
    done = subprocess.run(words, capture_output=True, text=True, timeout=90, check=False)
    return done.returncode, done.stdout, done.stderr


def test_without_a_policy_nothing_is_captured(start: Starter, tmp_path: Path) -> None:
    words = start.command(f"--policy={tmp_path / 'none.conf'}", "--uid=1000")
    code, out, said = refused(words)
    assert (code, out) == (4, "") and "not allowed on this machine" in said
    assert not list((tmp_path / "records").iterdir())


def test_the_policy_bounds_the_size(start: Starter, wire: Wire, tmp_path: Path) -> None:
    policy = tmp_path / "netem.conf"
    policy.write_text("enabled yes\ncapture yes\ncapture_max_bytes 10000\nprotect 10.10.0.0/24\n")
    options = [f"--policy={policy}", "--uid=1000", "--max-bytes=50000000", "--device=wire"]
    code, _, said = refused(wire.within(*start.command(*options, "--exclusive=no")))
    assert code == 4 and "exclusive" in said
    process = subprocess.Popen(
        wire.within(*start.command(*options, "--exclusive=yes")),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    out, said = start.answer(process)
    assert "not net 10.10.0.0/24" in out, said
    wire.send("1094", 200)
    assert process.wait(60) == 0


def test_no_dumpcap_is_something_missing(start: Starter) -> None:
    hide = 'mount --bind /dev/null /usr/bin/dumpcap && exec "$@"'
    words = ["unshare", "-m", "sh", "-c", hide, "sh", *start.command("--no-policy", "--device=lo")]
    code, out, said = refused(words)
    assert (code, out) == (3, "")
    assert said == (
        "steelyard-node capture: capture: there is no /usr/bin/dumpcap (Debian: "
        "wireshark-common, RHEL: wireshark-cli)\n"
    )


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--device=../x", "there is no such device"),
        ("--filter-to=10.0.0.0/8 or port 22", "expected a prefix length"),
        ("--protect=$(id)", "expected an address or a network"),
        ("--max-bytes=-1", "expected a whole number"),
        ("--owner=0", "expected UID:GID"),
        ("--node=../n1", "must be names without '/'"),
    ],
)
def test_what_is_wrong_is_named(start: Starter, option: str, said: str) -> None:
    code, out, why = refused(start.command("--no-policy", option))
    assert (code, out) == (2, "")
    assert said in why
