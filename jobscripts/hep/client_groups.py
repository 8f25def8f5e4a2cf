"""The clients of a run, on one node or several: a group of workers on each, which begin together.

Each node's group (client_group.py) is started and directed in one way: over a connection, by a line of
JSON for each question. The first node's is a thread of this program. Those of other nodes are started by
the run's own way to its nodes and call back over TCP with the run's secret. Every node has a monotonic
clock of its own: before each iteration it is read several times, and of the reading with the shortest
round trip the middle is taken for the same moment, which is wrong by half of that round trip at most
(Cristian, "Probabilistic clock synchronization", Distributed Computing 3, 1989). All times in
answers are those of the first node's clock.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.jobscripts.hep import client_group
from steelyard.jobscripts.hep.client_group import SECRET, keep_alive
from steelyard.jobscripts.hep.workers import WorkerError

PATIENCE_S = 300.0  # to start a program on another node, and to import uproot there
READINGS = 5  # of a clock
LEAST_LEAD_S = 0.1  # between the word to begin and the beginning: workers must have read it
Answer = dict[str, Any]
Tasks = Mapping[int, Mapping[str, Any]]  # by a worker's place in its group


class Group:
    """One node's, at the other end of a connection; `offset_s` is its clock less the first node's."""

    def __init__(self, node: str, line: socket.socket, is_first: bool = False) -> None:
        self.node, self.line, self.file = node, line, line.makefile("r", encoding="utf-8")
        self.is_first, self.offset_s, self.error_s = is_first, 0.0, 0.0

    def ask(self, question: Mapping[str, Any]) -> Answer:
        """Say it and wait for the answer."""
        self.tell(question)
        return self.hear()

    def tell(self, question: Mapping[str, Any]) -> None:
        """One line."""
        self.line.sendall((json.dumps(question) + "\n").encode())

    def hear(self) -> Answer:
        """One line; WorkerError where there is none, or one that says what went wrong."""
        try:
            text = self.file.readline()
        except OSError as error:
            raise WorkerError(f"the clients on {self.node} are gone: {error}") from error
        if not text.endswith("\n"):
            raise WorkerError(f"the clients on {self.node} are gone, without a word")
        found: Answer = json.loads(text)
        if "error" in found:
            where = "" if self.is_first else f"on {self.node}: "
            raise WorkerError(f"{where}{found['error']}")
        return found

    def read_clock(self) -> None:
        """`offset_s`, wrong by `error_s` at most; the first node's is the one that others are read by."""
        if self.is_first:
            return
        readings = []
        for _ in range(READINGS):
            before = time.monotonic()
            there = float(self.ask({"clock": True})["clock_s"])
            after = time.monotonic()
            readings.append((after - before, there - (before + after) / 2))
        round_trip_s, self.offset_s = min(readings)
        self.error_s = round_trip_s / 2

    def begin(self, tasks: Tasks) -> None:
        """Hand them out, with times of its own clock; each worker waits for its `begin_s`."""
        shifted = {
            place: {**task, "begin_s": task["begin_s"] + self.offset_s}
            for place, task in tasks.items()
        }
        self.tell({"tasks": shifted})

    def answers(self) -> dict[int, Answer]:
        """With times of the first node's clock."""
        found = {int(place): one for place, one in self.hear()["answers"].items()}
        for one in found.values():
            one["begin_s"] -= self.offset_s
            one["end_s"] -= self.offset_s
        return found

    def disconnect(self) -> None:
        """Its workers have ended when it answers."""
        self.ask({"disconnect": True})


@dataclass(frozen=True)
class Elsewhere:
    """How other nodes' groups are started: by `script NODE COMMAND …`; they call `address`."""

    nodes: Sequence[str]
    script: str
    address: str


class Groups:
    """All clients: number i is on the node i modulo nodes."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self.groups = groups

    @property
    def clock_error_s(self) -> float | None:
        """By how much times of different nodes may be wrong beside each other; None: one node."""
        return max(group.error_s for group in self.groups) if len(self.groups) > 1 else None

    def together(self, tasks: Sequence[Mapping[str, Any]]) -> list[Answer]:
        """One task for each client; their answers once all have given them."""
        return self._run(list(enumerate(tasks)))

    def in_turn(self, tasks: Sequence[Mapping[str, Any]]) -> list[Answer]:
        """Each when the one before it has answered."""
        return [answer for one in enumerate(tasks) for answer in self._run([one])]

    def _run(self, numbered: Sequence[tuple[int, Mapping[str, Any]]]) -> list[Answer]:
        by_group: dict[int, dict[int, Mapping[str, Any]]] = {}
        begin_s = self._moment()
        for number, task in numbered:
            place, group = divmod(number, len(self.groups))
            by_group.setdefault(group, {})[place] = {**task, "number": number, "begin_s": begin_s}
        for group, tasks in by_group.items():
            self.groups[group].begin(tasks)
        found: dict[int, Answer] = {}
        for group in by_group:
            for place, answer in self.groups[group].answers().items():
                number = place * len(self.groups) + group
                found[number] = {**answer, "node": self.groups[group].node}
        return [found[number] for number, _ in numbered]

    def _moment(self) -> float:
        """When all can have read their tasks; one node's begin as they read them."""
        if len(self.groups) == 1:
            return 0.0
        for group in self.groups:
            group.read_clock()
        lead_s = max(LEAST_LEAD_S, 4 * max(group.error_s for group in self.groups))
        return time.monotonic() + lead_s

    @contextmanager
    def others(self, count: int, url: str) -> Iterator[list[Answer]]:
        """So many clients more, number i on the node i modulo nodes, load it meanwhile; the list
        has what they got, afterwards."""
        found: list[Answer] = []
        shares = [len(range(i, count, len(self.groups))) for i in range(len(self.groups))]
        begun = [(g, share) for g, share in zip(self.groups, shares, strict=True) if share]
        for group, share in begun:
            group.ask({"others": share, "url": url})
        yield found
        for group, _ in begun:
            found += group.ask({"others_end": True})["others"]

    def disconnect(self) -> None:
        """All workers end, and their connections are closed in order."""
        for group in self.groups:
            group.disconnect()


@contextmanager
def started(
    count: int, mode: str, environment: Mapping[str, str], here: str, elsewhere: Elsewhere | None
) -> Iterator[Groups]:
    """So many clients, all ready, on this node and those elsewhere; none is left behind."""
    with ExitStack() as stack:
        groups = [stack.enter_context(first(here, mode))]
        if elsewhere:
            groups += stack.enter_context(called(elsewhere, mode))
        for number, group in enumerate(groups):
            share = len(range(number, count, len(groups)))
            group.tell({"count": share, "environment": settings(environment)})
        for group in groups:
            group.hear()
        yield Groups(groups)


@contextmanager
def first(node: str, mode: str) -> Iterator[Group]:
    """This node's."""
    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=serve, args=(theirs, mode))
    thread.start()
    try:
        yield Group(node, ours, is_first=True)
    finally:
        hang_up(ours)
        thread.join()


def serve(connection: socket.socket, mode: str) -> None:
    """Its end of the connection, which ends with it."""
    try:
        client_group.serve(client_group.Line(connection), mode, os.environ["SY_SCRATCH"])
    finally:
        hang_up(connection)


def settings(environment: Mapping[str, str]) -> dict[str, str]:
    """What clients elsewhere must have, too."""
    return {name: value for name, value in environment.items() if name.startswith("XRD_")}


@contextmanager
def called(elsewhere: Elsewhere, mode: str) -> Iterator[list[Group]]:
    """Start the other nodes' groups; they have all called back."""
    secret = secrets.token_hex(16)
    with ExitStack() as stack:
        listener = stack.enter_context(listening())
        started = {}
        for node in elsewhere.nodes:
            address = (elsewhere.address, str(listener.getsockname()[1]))
            started[node] = start(elsewhere.script, node, [*address, mode], secret)
            stack.callback(stop, started[node])
        lines = {}
        for node, line in calls(listener, started, secret):
            lines[node] = line
            stack.callback(hang_up, line)
        yield [Group(node, lines[node]) for node in elsewhere.nodes]


def hang_up(line: socket.socket) -> None:
    """The other end hears of it, whoever else has the socket open."""
    with contextlib.suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)
    line.close()


def listening() -> socket.socket:
    """A port of this node's, for IPv4 and IPv6."""
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    return socket.create_server(("", 0), family=family, dualstack_ipv6=both)


def start(script: str, node: str, words: Sequence[str], secret: str) -> subprocess.Popen[bytes]:
    """One group; what it says goes to the attempt's folder."""
    module = "steelyard.jobscripts.hep.client_group"
    with log_of(node).open("wb") as log:
        return subprocess.Popen(
            ["bash", script, node, sys.executable, "-m", module, node, *words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, SECRET: secret},
            start_new_session=True,
        )


def log_of(node: str) -> Path:
    """What the group of a node said."""
    return Path(os.environ["SY_ATTEMPT_DIR"]) / f"clients.{node}.err"


def stop(process: subprocess.Popen[bytes]) -> None:
    """It ends with its connection; else it and what it started are made to."""
    try:
        process.wait(10.0)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(5.0)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def calls(
    listener: socket.socket, started: Mapping[str, subprocess.Popen[bytes]], secret: str
) -> Iterator[tuple[str, socket.socket]]:
    """Each node's connection as it comes; WorkerError when one ends instead, or stays away."""
    missing, end = set(started), time.monotonic() + PATIENCE_S
    while missing:
        for node in missing:
            check_start(node, started[node], end)
        if not select.select([listener], [], [], 0.2)[0]:
            continue
        line, _ = listener.accept()
        caller = greeting(line, secret)
        if caller in missing:
            missing.remove(caller)
            keep_alive(line)
            yield caller, line
        else:
            line.close()


def check_start(node: str, process: subprocess.Popen[bytes], end: float) -> None:
    """WorkerError when nothing will come of it."""
    code = process.poll()
    if code is None and time.monotonic() < end:
        return
    words = log_of(node).read_text(encoding="utf-8", errors="replace").strip().splitlines()
    what = f"were not ready after {PATIENCE_S:.0f} s" if code is None else f"ended with {code}"
    raise WorkerError(f"the clients on {node} {what}: {(words or ['without a word'])[-1][:300]}")


def greeting(line: socket.socket, secret: str) -> str | None:
    """The node that calls, if it knows the secret."""
    try:
        line.settimeout(10.0)
        with line.makefile("r", encoding="utf-8") as file:
            said = json.loads(file.readline(1000))
        line.settimeout(None)
        right = hmac.compare_digest(str(said["secret"]), secret)
        return str(said["node"]) if right else None
    except (OSError, ValueError, LookupError, TypeError):
        return None
