"""The clients of one of the run's other nodes: workers as on the first node, told what to do by it.

    python -m steelyard.jobscripts.hep.far_crew NODE HOST PORT MODE

Calls HOST:PORT, says who it is, and answers one line of JSON to each (crews.py). It ends with its
connection: when the run is over, or whoever had it was killed.
"""

from __future__ import annotations

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

from steelyard.jobscripts.hep import background, team
from steelyard.jobscripts.hep.crews import SECRET, keep_alive
from steelyard.jobscripts.hep.processes import die_with_parent

CALL_S = 60.0


class GoneError(Exception):
    """The first node has closed the connection."""


class Line:
    """The connection to the first node."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.file = connection.makefile("r", encoding="utf-8")

    def read(self) -> dict[str, Any]:
        """The next question."""
        text = self.file.readline()
        if not text.endswith("\n"):
            raise GoneError
        found: dict[str, Any] = json.loads(text)
        return found

    def write(self, answer: Mapping[str, Any]) -> None:
        """One line."""
        self.connection.sendall((json.dumps(answer) + "\n").encode())

    def wait_beside(self, worker: team.Worker) -> None:
        """Until the worker has something to say; GoneError when the first node has gone before."""
        pipe = team.pipe(worker.stdout)
        if self.connection in select.select([pipe, self.connection], [], [])[0]:
            raise GoneError  # it asks nothing while it waits for an answer


def work(line: Line, crew: Sequence[team.Worker], scratch: str, tasks: Mapping[str, Any]) -> None:
    """The tasks of some workers, by place, and their answers."""
    mine = {
        int(place): {**task, "skim": f"{scratch}/skim.{place}.root"}
        for place, task in tasks.items()
    }
    team.hand_out([crew[place] for place in mine], list(mine.values()))
    answers = {}
    for place, task in mine.items():
        line.wait_beside(crew[place])
        answers[place] = team.answer(int(task["number"]), crew[place])
    line.write({"answers": answers})


def serve(line: Line, mode: str) -> None:
    """Until the first node is gone."""
    with ExitStack() as stack:
        base = os.environ.get("SY_SCRATCH_BASE") or os.environ.get("TMPDIR") or "/tmp"
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="steelyard.", dir=base))
        wanted = line.read()
        environment = {**os.environ, **wanted["environment"]}
        environment.pop(SECRET, None)
        crew = stack.enter_context(team.workers(int(wanted["count"]), mode, environment))
        line.write({"ready": True})
        others = background.Others(())
        while True:
            question = line.read()
            if "clock" in question:
                line.write({"clock_s": time.monotonic()})
            elif "tasks" in question:
                work(line, crew, scratch, question["tasks"])
            elif "others" in question:
                asked = background.others(int(question["others"]), str(question["url"]))
                others = stack.enter_context(asked)
                line.write({"others": True})
            elif "others_end" in question:
                line.write({"others": others.end()})
            else:
                team.disconnect(crew)
                line.write({"disconnected": True})


def asked_to_stop(number: int, frame: FrameType | None) -> NoReturn:
    """Once: what was made is removed, whoever asks again."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(128 + number)


def main() -> int:
    """0 once the first node has gone; 1 with a line on stderr when its own workers failed."""
    die_with_parent()
    signal.signal(signal.SIGTERM, asked_to_stop)
    node, host, port, mode = sys.argv[1:]
    with socket.create_connection((host, int(port)), CALL_S) as connection:
        connection.settimeout(None)
        keep_alive(connection)
        line = Line(connection)
        line.write({"node": node, "secret": os.environ.get(SECRET, "")})
        try:
            serve(line, mode)
        except (GoneError, ConnectionError):
            return 0
        except (team.WorkerError, background.BackgroundError, OSError) as error:
            sys.stderr.write(f"steelyard: {error}\n")
            line.write({"error": str(error)})
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
