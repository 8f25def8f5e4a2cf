"""The clients of a run, on one node or several: a crew of workers on each, which begin together.

The first node's crew is team.py's. Those of other nodes (far_crew.py) are started by the run's own
way to its nodes and call back over TCP with the run's secret. Every node has a monotonic clock of
its own: before each iteration it is read several times, and of the reading with the shortest round
trip the middle is taken for the same moment, which is wrong by half of that round trip at most
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
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from steelyard.jobscripts.hep import background, team
from steelyard.jobscripts.hep.team import WorkerError

SECRET = "SY_HEP_SECRET"  # the variable that crews elsewhere have it in
PATIENCE_S = 300.0  # to start a program on another node, and to import uproot there
READINGS = 5  # of a clock
LEAST_LEAD_S = 0.1  # between the word to begin and the beginning: workers must have read it
Answer = dict[str, Any]
Tasks = Mapping[int, Mapping[str, Any]]  # by a worker's place in its crew


class Crew(Protocol):
    """The workers of one node; `offset_s` is its clock less the first node's."""

    node: str
    offset_s: float
    error_s: float

    def read_clock(self) -> None: ...

    def begin(self, tasks: Tasks) -> None: ...

    def answers(self) -> dict[int, Answer]: ...

    def disconnect(self) -> None: ...

    def others(self, count: int, url: str) -> AbstractContextManager[background.Others]: ...


class Near:
    """The first node's own."""

    offset_s = error_s = 0.0

    def __init__(self, node: str, workers: Sequence[team.Worker]) -> None:
        self.node, self.workers, self.busy = node, workers, dict[int, int]()

    def read_clock(self) -> None:
        """It is the clock that others are read by."""

    def begin(self, tasks: Tasks) -> None:
        """Hand them out; each worker waits for its `begin_s`."""
        team.hand_out([self.workers[place] for place in tasks], list(tasks.values()))
        self.busy = {place: int(task["number"]) for place, task in tasks.items()}

    def answers(self) -> dict[int, Answer]:
        """Of all who have a task."""
        return {p: team.answer(n, self.workers[p]) for p, n in self.busy.items()}

    def disconnect(self) -> None:
        """Let all end by themselves."""
        team.disconnect(self.workers)

    def others(self, count: int, url: str) -> AbstractContextManager[background.Others]:
        """Background traffic from here."""
        return background.others(count, url)


class FarOthers(background.Others):
    """Clients of the background traffic on another node."""

    def __init__(self, far: Far) -> None:
        super().__init__(())
        self.far = far

    def end(self) -> list[Answer]:
        """What each of them got."""
        return list(self.far.ask({"others_end": True})["others"])


class Far:
    """Another node's, at the other end of a connection."""

    def __init__(self, node: str, line: socket.socket) -> None:
        self.node, self.line, self.file = node, line, line.makefile("r", encoding="utf-8")
        self.offset_s = self.error_s = 0.0

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
            raise WorkerError(f"on {self.node}: {found['error']}")
        return found

    def read_clock(self) -> None:
        """`offset_s`, wrong by `error_s` at most."""
        readings = []
        for _ in range(READINGS):
            before = time.monotonic()
            there = float(self.ask({"clock": True})["clock_s"])
            after = time.monotonic()
            readings.append((after - before, there - (before + after) / 2))
        round_trip_s, self.offset_s = min(readings)
        self.error_s = round_trip_s / 2

    def begin(self, tasks: Tasks) -> None:
        """The same as Near's, with times of its own clock."""
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

    @contextmanager
    def others(self, count: int, url: str) -> Iterator[background.Others]:
        """Background traffic from there; it ends with the connection at the latest."""
        self.ask({"others": count, "url": url})
        yield FarOthers(self)


@dataclass(frozen=True)
class Elsewhere:
    """How other nodes' crews are started: by `script NODE COMMAND …`; they call `address`."""

    nodes: Sequence[str]
    script: str
    address: str


class Crews:
    """All clients: number i is on the node i modulo nodes."""

    def __init__(self, crews: Sequence[Crew]) -> None:
        self.crews = crews

    @property
    def clock_error_s(self) -> float | None:
        """By how much times of different nodes may be wrong beside each other; None: one node."""
        return max(crew.error_s for crew in self.crews) if len(self.crews) > 1 else None

    def together(self, tasks: Sequence[Mapping[str, Any]]) -> list[Answer]:
        """One task for each client; their answers once all have given them."""
        return self._run(list(enumerate(tasks)))

    def in_turn(self, tasks: Sequence[Mapping[str, Any]]) -> list[Answer]:
        """Each when the one before it has answered."""
        return [answer for one in enumerate(tasks) for answer in self._run([one])]

    def _run(self, numbered: Sequence[tuple[int, Mapping[str, Any]]]) -> list[Answer]:
        by_crew: dict[int, dict[int, Mapping[str, Any]]] = {}
        begin_s = self._moment()
        for number, task in numbered:
            place, crew = divmod(number, len(self.crews))
            by_crew.setdefault(crew, {})[place] = {**task, "number": number, "begin_s": begin_s}
        for crew, tasks in by_crew.items():
            self.crews[crew].begin(tasks)
        found: dict[int, Answer] = {}
        for crew in by_crew:
            for place, answer in self.crews[crew].answers().items():
                number = place * len(self.crews) + crew
                found[number] = {**answer, "node": self.crews[crew].node}
        return [found[number] for number, _ in numbered]

    def _moment(self) -> float:
        """When all can have read their tasks; one node's begin as they read them."""
        if len(self.crews) == 1:
            return 0.0
        for crew in self.crews:
            crew.read_clock()
        lead_s = max(LEAST_LEAD_S, 4 * max(crew.error_s for crew in self.crews))
        return time.monotonic() + lead_s

    @contextmanager
    def others(self, count: int, url: str) -> Iterator[list[Answer]]:
        """So many clients more, number i on the node i modulo nodes, load it meanwhile; the list
        has what they got, afterwards."""
        found: list[Answer] = []
        with ExitStack() as stack:
            shares = [len(range(i, count, len(self.crews))) for i in range(len(self.crews))]
            begun = [
                stack.enter_context(crew.others(share, url))
                for crew, share in zip(self.crews, shares, strict=True)
                if share
            ]
            yield found
            for one in begun:
                found += one.end()

    def disconnect(self) -> None:
        """All workers end, and their connections are closed in order."""
        for crew in self.crews:
            crew.disconnect()


@contextmanager
def crews(
    count: int, mode: str, environment: Mapping[str, str], here: str, elsewhere: Elsewhere | None
) -> Iterator[Crews]:
    """So many clients, all ready, on this node and those elsewhere; none is left behind."""
    others = elsewhere.nodes if elsewhere else ()
    shares = [len(range(first, count, 1 + len(others))) for first in range(1 + len(others))]
    with ExitStack() as stack:
        far: list[Far] = []
        if elsewhere:
            far = stack.enter_context(called(elsewhere, mode))
        for crew, share in zip(far, shares[1:], strict=True):
            crew.tell({"count": share, "environment": settings(environment)})
        near = stack.enter_context(team.workers(shares[0], mode, environment))
        for crew in far:
            crew.hear()
        yield Crews([Near(here, near), *far])


def settings(environment: Mapping[str, str]) -> dict[str, str]:
    """What clients elsewhere must have, too."""
    return {name: value for name, value in environment.items() if name.startswith("XRD_")}


@contextmanager
def called(elsewhere: Elsewhere, mode: str) -> Iterator[list[Far]]:
    """Start the other nodes' crews; they have all called back."""
    secret = secrets.token_hex(16)
    with ExitStack() as stack:
        door = stack.enter_context(listening())
        started = {}
        for node in elsewhere.nodes:
            address = (elsewhere.address, str(door.getsockname()[1]))
            started[node] = start(elsewhere.script, node, [*address, mode], secret)
            stack.callback(stop, started[node])
        lines = {}
        for node, line in calls(door, started, secret):
            lines[node] = line
            stack.callback(hang_up, line)
        yield [Far(node, lines[node]) for node in elsewhere.nodes]


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
    """One crew; what it says goes to the attempt's folder."""
    module = "steelyard.jobscripts.hep.far_crew"
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
    """What the crew of a node said."""
    return Path(os.environ["SY_ATTEMPT_DIR"]) / f"crew.{node}.err"


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
    door: socket.socket, started: Mapping[str, subprocess.Popen[bytes]], secret: str
) -> Iterator[tuple[str, socket.socket]]:
    """Each node's connection as it comes; WorkerError when one ends instead, or stays away."""
    missing, end = set(started), time.monotonic() + PATIENCE_S
    while missing:
        for node in missing:
            check_start(node, started[node], end)
        if not select.select([door], [], [], 0.2)[0]:
            continue
        line, _ = door.accept()
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


def keep_alive(line: socket.socket) -> None:
    """At once, and an error within two minutes where the other node is gone."""
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 6)
