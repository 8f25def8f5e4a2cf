"""The clients of one node of the run: workers that the run's main program (client_groups.py)
directs.

python -m steelyard.jobscripts.hep.client_group NODE HOST PORT MODE

On another node it is a program, which connects to HOST:PORT and sends its node's name. On the first
node it is a thread of the run's main program. It answers each request with one line of JSON. It
ends when its connection closes: when the run is over, or its main program was killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import FrameType
from typing import Any, NoReturn

from steelyard.jobscripts.hep import background_traffic, client_processes
from steelyard.jobscripts.hep.process_lifetime import die_with_parent

CALL_S = 60.0
SECRET = "SY_HEP_SECRET"  # the environment variable of groups on other nodes


class GoneError(Exception):
    """The run's main program has closed the connection."""


class Line:
    """The connection to the run's main program."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.file = connection.makefile("r", encoding="utf-8")

    def read(self) -> dict[str, Any]:
        """Return the next request; raise GoneError at the end."""
        text = self.file.readline()
        if not text.endswith("\n"):
            raise GoneError
        found: dict[str, Any] = json.loads(text)
        return found

    def write(self, answer: Mapping[str, Any]) -> None:
        """Send one line."""
        self.connection.sendall((json.dumps(answer) + "\n").encode())

    def wait_beside(self, worker: client_processes.Worker) -> None:
        """Wait until the worker has output; raise GoneError if the connection closes first."""
        pipe = client_processes.pipe(worker.stdout)
        if self.connection in select.select([pipe, self.connection], [], [])[0]:
            raise GoneError  # the main program sends nothing while it waits for an answer


def work(
    line: Line, group: Sequence[client_processes.Worker], scratch: str, tasks: Mapping[str, Any]
) -> None:
    """Give tasks to workers, by index in the group, and send their answers."""
    mine = {
        int(index): {**task, "skim": f"{scratch}/skim.{index}.root"}
        for index, task in tasks.items()
    }
    client_processes.hand_out([group[index] for index in mine], list(mine.values()))
    answers = {}
    for index, task in mine.items():
        line.wait_beside(group[index])
        answers[index] = client_processes.answer(int(task["number"]), group[index])
    line.write({"answers": answers})


def serve(line: Line, mode: str, scratch: str) -> str | None:
    """Answer requests until the connection closes; return the workers' error, or None."""
    try:
        answer_questions(line, mode, scratch)
    except (GoneError, ConnectionError):
        return None
    except (client_processes.WorkerError, background_traffic.BackgroundError, OSError) as error:
        with contextlib.suppress(OSError):
            line.write({"error": str(error)})
        return str(error)
    return None


def answer_questions(line: Line, mode: str, scratch: str) -> NoReturn:
    """Start the workers and answer requests; all started programs end with this function."""
    with ExitStack() as stack:
        request = line.read()
        environment = {**os.environ, **request["environment"]}
        environment.pop(SECRET, None)
        group = stack.enter_context(
            client_processes.started(int(request["count"]), mode, environment)
        )
        line.write({"ready": True})
        others = background_traffic.Others(())
        while True:
            question = line.read()
            if "clock" in question:
                line.write({"clock_s": time.monotonic()})
            elif "tasks" in question:
                work(line, group, scratch, question["tasks"])
            elif "others" in question:
                count, url = int(question["others"]), str(question["url"])
                others = stack.enter_context(background_traffic.others(count, url))
                line.write({"others": True})
            elif "others_end" in question:
                line.write({"others": others.end()})
            else:
                client_processes.disconnect(group)
                line.write({"disconnected": True})


def handle_stop_signal(number: int, frame: FrameType | None) -> NoReturn:
    """Exit on the first SIGTERM; ignore others, so that temporary files are removed."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(128 + number)


def keep_alive(line: socket.socket) -> None:
    """Send without delay, and get an error within two minutes if the other node is down."""
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 6)


def main() -> int:
    """Connect and serve; return 0, or 1 with a line on stderr if the node's workers failed."""
    die_with_parent()
    signal.signal(signal.SIGTERM, handle_stop_signal)
    node, host, port, mode = sys.argv[1:]
    base = os.environ.get("SY_SCRATCH_BASE") or os.environ.get("TMPDIR") or "/tmp"
    with (
        socket.create_connection((host, int(port)), CALL_S) as connection,
        tempfile.TemporaryDirectory(prefix="steelyard.", dir=base) as scratch,
    ):
        connection.settimeout(None)
        keep_alive(connection)
        line = Line(connection)
        line.write({"node": node, "secret": os.environ.get(SECRET, "")})
        error = serve(line, mode, scratch)
    if error is not None:
        sys.stderr.write(f"steelyard: {error}\n")
    return int(error is not None)


if __name__ == "__main__":
    sys.exit(main())
