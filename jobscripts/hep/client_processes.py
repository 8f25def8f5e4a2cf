"""Runs several clients at the same time: processes that are all ready before the first one begins.

A worker prints `ready`, then answers each task of its input, a line of JSON, with another line of
JSON. It ends with its input.
"""

from __future__ import annotations

import json
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from steelyard.jobscripts.hep.process_lifetime import die_with_parent, end_by_force_after

PATIENCE_S = 300.0  # to import uproot: a slow file system may take a while


class WorkerError(Exception):
    """A client failed; the message is one line."""


Worker = subprocess.Popen[str]


@contextmanager
def started(count: int, mode: str, environment: Mapping[str, str]) -> Iterator[list[Worker]]:
    """Start `count` workers and wait until all are ready; end them with the `with` statement."""
    command = [sys.executable, "-m", "steelyard.jobscripts.hep.client_processes", mode]
    found: list[Worker] = []
    try:
        for _ in range(count):
            found.append(
                subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    env=dict(environment),
                )
            )
        for number, worker in enumerate(found):
            wait_ready(number, worker)
        yield found
    finally:
        for worker in found:
            end(worker)


def wait_ready(number: int, worker: Worker) -> None:
    """Wait until a worker is ready; raise WorkerError if it ends or takes too long."""
    readable, _, _ = select.select([pipe(worker.stdout)], [], [], PATIENCE_S)
    if not readable or pipe(worker.stdout).readline() != "ready\n":
        what = "ended" if readable else f"was not ready after {PATIENCE_S:.0f} s"
        raise WorkerError(f"client {number} {what} before it began")


def pipe(stream: Any) -> Any:
    """Return a pipe that was requested; Popen's type allows None."""
    assert stream is not None
    return stream


def end(worker: Worker) -> None:
    """End a worker by closing its input; kill it after 5 s."""
    worker.terminate()
    pipe(worker.stdin).close()
    pipe(worker.stdout).close()
    try:
        worker.wait(5.0)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()


def disconnect(group: Sequence[Worker]) -> None:
    """Let all workers end by themselves, so that their connections are closed in order."""
    for worker in group:
        pipe(worker.stdin).close()
    deadline = time.monotonic() + 10.0
    for worker in group:
        try:
            worker.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            continue  # `end` kills it


def hand_out(group: Sequence[Worker], tasks: Sequence[Mapping[str, Any]]) -> None:
    """Send one task to each worker, which begins at the task's `begin_s` of the monotonic clock."""
    for worker, task in zip(group, tasks, strict=True):
        pipe(worker.stdin).write(json.dumps(task) + "\n")
    for worker in group:  # this write is the worker's signal to begin
        pipe(worker.stdin).flush()


def answer(number: int, worker: Worker) -> dict[str, Any]:
    """Return a worker's answer; raise WorkerError if it is an error or missing."""
    line = pipe(worker.stdout).readline()
    if not line:
        raise WorkerError(f"client {number} ended with {worker.wait()} and without an answer")
    found: dict[str, Any] = json.loads(line)
    if "error" in found:
        raise WorkerError(f"client {number}: {found['error']}")
    return found


def main() -> None:
    """Run a worker."""
    die_with_parent()
    # The exception makes subprocess.run kill the program that it started.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    end_by_force_after(3.0)
    from steelyard.jobscripts.hep import client_tasks, counting_reader, input_files

    mode = sys.argv[1]
    client_tasks.prepare(mode)
    write_line("ready")
    for line in sys.stdin:
        task = json.loads(line)
        time.sleep(max(0.0, task["begin_s"] - time.monotonic()))
        try:
            found = client_tasks.WORK[mode](task)
        except (counting_reader.ReadError, input_files.DataError, OSError) as error:
            found = {"error": str(error)}
        write_line(json.dumps(found))


def write_line(line: str) -> None:
    """Print a line at once: another process waits for it."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
