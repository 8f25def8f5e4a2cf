"""Packet headers of a command on this machine: `steelyard-node capture` beside the sampler."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from steelyard.wrappers.base import node
from steelyard.wrappers.netem import program as netem

GRACE_S = 10


def words(place: Path, folder: Path, job_id: str, device: str | None) -> tuple[str, ...]:
    """The command of steelyard-node: by root's own word, headers beside the record in `place`."""
    whose = (f"--run-dir={folder}", f"--node={netem.node_name()}", f"--job-id={job_id}")
    where = () if device is None else (f"--device={device}",)
    return ("capture", f"--record-dir={place}", *whose, f"--watch={os.getpid()}", "--no-policy",
            *where)  # fmt: skip


@contextmanager
def recorded(place: Path, folder: Path, job_id: str, device: str | None) -> Iterator[list[str]]:
    """Packets are recorded while the body runs, which gets options for its sampler: that one ends
    the capture when the command has ended, and takes its document into the record. SteelyardError
    before the body: nothing is recorded."""
    child = begin(words(place, folder, job_id, device))
    try:
        yield [f"--run-dir={folder}", f"--node={netem.node_name()}"]
    finally:
        child.terminate()  # only where no sampler has done it
        try:
            child.wait(timeout=GRACE_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def begin(command: tuple[str, ...]) -> subprocess.Popen[str]:
    """It says its document and closes its streams once packets are taken, and goes on."""
    program = str(node.find_node_program())
    child = subprocess.Popen(
        [program, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,  # Ctrl-C is the command's; what it sends then counts, too
    )
    if child.stdout is None or child.stderr is None:  # pipes were asked for
        raise AssertionError
    with child.stdout as out, child.stderr as err:
        begun, said = out.read(), err.read()
    if begun:
        return child
    raise netem.complaint(program, command, child.wait(), said)
