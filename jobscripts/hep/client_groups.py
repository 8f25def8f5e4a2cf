"""The clients of a run on one or several nodes: a group of workers on each, which begin together.

Each node's group (client_group.py) is directed over a connection, with one line of JSON per
request. The first node's group is a thread of this program. The groups of other nodes are started
by the run's launch script; they connect over TCP and send the run's secret.

Every node has its own monotonic clock. Before each iteration it is read several times. The reading
with the shortest round trip is assumed to be from the middle of it, with an error of at most half
of that round trip (Cristian, "Probabilistic clock synchronization", Distributed Computing 3, 1989).
All times in answers are of the first node's clock.
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
from steelyard.jobscripts.hep.client_processes import WorkerError

PATIENCE_S = 300.0  # to start a program on another node, and to import uproot there
READINGS = 5  # of a clock per iteration
LEAST_LEAD_S = 0.1  # from the tasks' sending to their begin: workers must have read them
Answer = dict[str, Any]
Tasks = Mapping[int, Mapping[str, Any]]  # by a worker's index in its group


class Group:
    """The group of one node; `offset_s` is its clock minus the first node's."""

    def __init__(self, node: str, line: socket.socket, is_first: bool = False) -> None:
        self.node, self.line, self.file = node, line, line.makefile("r", encoding="utf-8")
        self.is_first, self.offset_s, self.error_s = is_first, 0.0, 0.0

    def query(self, question: Mapping[str, Any]) -> Answer:
        """Send a request and return the answer."""
        self.send(question)
        return self.hear()

    def send(self, question: Mapping[str, Any]) -> None:
        """Send one line."""
        self.line.sendall((json.dumps(question) + "\n").encode())

    def hear(self) -> Answer:
        """Return the next line; raise WorkerError if it is an error or missing."""
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
        """Set `offset_s` and its largest error `error_s`; those of the first node remain 0."""
        if self.is_first:
            return
        readings = []
        for _ in range(READINGS):
            before = time.monotonic()
            clock_s = float(self.query({"clock": True})["clock_s"])
            after = time.monotonic()
            readings.append((after - before, clock_s - (before + after) / 2))
        round_trip_s, self.offset_s = min(readings)
        self.error_s = round_trip_s / 2

    def begin(self, tasks: Tasks) -> None:
        """Send tasks with times of the group's clock; each worker waits for its `begin_s`."""
        shifted = {
            index: {**task, "begin_s": task["begin_s"] + self.offset_s}
            for index, task in tasks.items()
        }
        self.send({"tasks": shifted})

    def answers(self) -> dict[int, Answer]:
        """Return the answers with times of the first node's clock."""
        found = {int(index): one for index, one in self.hear()["answers"].items()}
        for one in found.values():
            one["begin_s"] -= self.offset_s
            one["end_s"] -= self.offset_s
        return found

    def disconnect(self) -> None:
        """End the group's workers and wait until they have ended."""
        self.query({"disconnect": True})


@dataclass(frozen=True)
class Elsewhere:
    """Other nodes: `script NODE COMMAND …` starts a group, which connects to `address`."""

    nodes: Sequence[str]
    script: str
    address: str


class Groups:
    """All clients: number i is on the node i modulo the number of nodes."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self.groups = groups

    @property
    def clock_error_s(self) -> float | None:
        """Return the largest error in s between times of different nodes; None: one node."""
        return max(group.error_s for group in self.groups) if len(self.groups) > 1 else None

    def together(self, tasks: Sequence[Mapping[str, Any]]) -> list[Answer]:
        """Run one task on each client at the same time; return all answers."""
        return self._run(list(enumerate(tasks)))

    def in_turn(self, tasks: Sequence[Mapping[str, Any]]) -> list[Answer]:
        """Run one task on each client, one after another; return all answers."""
        return [answer for one in enumerate(tasks) for answer in self._run([one])]

    def _run(self, numbered: Sequence[tuple[int, Mapping[str, Any]]]) -> list[Answer]:
        by_group: dict[int, dict[int, Mapping[str, Any]]] = {}
        begin_s = self._moment()
        for number, task in numbered:
            index, group = divmod(number, len(self.groups))
            by_group.setdefault(group, {})[index] = {**task, "number": number, "begin_s": begin_s}
        for group, tasks in by_group.items():
            self.groups[group].begin(tasks)
        found: dict[int, Answer] = {}
        for group in by_group:
            for index, answer in self.groups[group].answers().items():
                number = index * len(self.groups) + group
                found[number] = {**answer, "node": self.groups[group].node}
        return [found[number] for number, _ in numbered]

    def _moment(self) -> float:
        """Return the time by which all workers have read their tasks; 0 (at once) on one node."""
        if len(self.groups) == 1:
            return 0.0
        for group in self.groups:
            group.read_clock()
        lead_s = max(LEAST_LEAD_S, 4 * max(group.error_s for group in self.groups))
        return time.monotonic() + lead_s

    @contextmanager
    def others(self, count: int, url: str) -> Iterator[list[Answer]]:
        """Run `count` background clients, number i on the node i modulo the number of nodes.

        The list contains their results after the end of the `with` statement.
        """
        found: list[Answer] = []
        shares = [len(range(i, count, len(self.groups))) for i in range(len(self.groups))]
        begun = [(g, share) for g, share in zip(self.groups, shares, strict=True) if share]
        for group, share in begun:
            group.query({"others": share, "url": url})
        yield found
        for group, _ in begun:
            found += group.query({"others_end": True})["others"]

    def disconnect(self) -> None:
        """End all workers, whose connections are closed in order."""
        for group in self.groups:
            group.disconnect()


@contextmanager
def started(
    count: int, mode: str, environment: Mapping[str, str], here: str, elsewhere: Elsewhere | None
) -> Iterator[Groups]:
    """Start `count` clients on this node and the others, and wait until all are ready.

    All of them end with the `with` statement.
    """
    with ExitStack() as stack:
        groups = [stack.enter_context(first(here, mode))]
        if elsewhere:
            groups += stack.enter_context(called(elsewhere, mode))
        for number, group in enumerate(groups):
            share = len(range(number, count, len(groups)))
            group.send({"count": share, "environment": settings(environment)})
        for group in groups:
            group.hear()
        yield Groups(groups)


@contextmanager
def first(node: str, mode: str) -> Iterator[Group]:
    """Start this node's group as a thread."""
    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=serve, args=(theirs, mode))
    thread.start()
    try:
        yield Group(node, ours, is_first=True)
    finally:
        hang_up(ours)
        thread.join()


def serve(connection: socket.socket, mode: str) -> None:
    """Run this node's group until its connection closes."""
    try:
        client_group.serve(client_group.Line(connection), mode, os.environ["SY_SCRATCH"])
    finally:
        hang_up(connection)


def settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that clients on other nodes need, too."""
    return {name: value for name, value in environment.items() if name.startswith("XRD_")}


@contextmanager
def called(elsewhere: Elsewhere, mode: str) -> Iterator[list[Group]]:
    """Start the groups of the other nodes, and wait until all have connected."""
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
    """Close a connection for both ends, also if another process has the socket open."""
    with contextlib.suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)
    line.close()


def listening() -> socket.socket:
    """Listen on a free port, for IPv4 and IPv6."""
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    return socket.create_server(("", 0), family=family, dualstack_ipv6=both)


def start(script: str, node: str, arguments: Sequence[str], secret: str) -> subprocess.Popen[bytes]:
    """Start the group of a node; its output goes to the attempt's folder."""
    module = "steelyard.jobscripts.hep.client_group"
    with log_of(node).open("wb") as log:
        return subprocess.Popen(
            ["bash", script, node, sys.executable, "-m", module, node, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, SECRET: secret},
            start_new_session=True,
        )


def log_of(node: str) -> Path:
    """Return the file with the output of a node's group."""
    return Path(os.environ["SY_ATTEMPT_DIR"]) / f"clients.{node}.err"


def stop(process: subprocess.Popen[bytes]) -> None:
    """Wait for a group whose connection is closed; kill it with its children after 10 s."""
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
    """Yield each node and its connection; raise WorkerError if a group ends or does not connect."""
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
    """Raise WorkerError if a group has ended or is late."""
    code = process.poll()
    if code is None and time.monotonic() < end:
        return
    lines = log_of(node).read_text(encoding="utf-8", errors="replace").strip().splitlines()
    what = f"were not ready after {PATIENCE_S:.0f} s" if code is None else f"ended with {code}"
    raise WorkerError(f"the clients on {node} {what}: {(lines or ['without a word'])[-1][:300]}")


def greeting(line: socket.socket, secret: str) -> str | None:
    """Return the connecting node; None if it does not send the secret."""
    try:
        line.settimeout(10.0)
        with line.makefile("r", encoding="utf-8") as file:
            message = json.loads(file.readline(1000))
        line.settimeout(None)
        right = hmac.compare_digest(str(message["secret"]), secret)
        return str(message["node"]) if right else None
    except (OSError, ValueError, LookupError, TypeError):
        return None
