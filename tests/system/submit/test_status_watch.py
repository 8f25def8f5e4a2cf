"""`steelyard status --watch`: the whole screen of a terminal, lines elsewhere, and when it ends."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from typing import Any

from tests.unit.submit.test_status_watch import study as study  # noqa: PLC0414 - a fixture

from steelyard.wrappers.study.folder import StudyDir


def test_ctrl_c_on_a_terminal_leaves_it_as_it_was(study: StudyDir, slurm: Any) -> None:
    """The screen of before comes back, with one line of where the study is."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    child = subprocess.Popen(
        [sys.executable, "-m", "steelyard.wrappers.commands.cli", "status", str(study.path), "--watch"],
        stdin=follower, stdout=follower, stderr=follower, env=os.environ | {"TERM": "xterm"},
    )  # fmt: skip
    os.close(follower)
    told = read_until(leader, b"16 waiting")
    child.send_signal(signal.SIGINT)
    told += read_until(leader, None)
    assert child.wait(timeout=30) == 130
    enter, leave = b"\x1b[?1049h", b"\x1b[?1049l"
    assert told.count(enter) == told.count(leave) == 1
    after = told.partition(leave)[2]
    assert b"small: 0 done, 0 running, 16 waiting" in after
    assert b"Traceback" not in told
    assert told.rindex(b"\x1b[?25h") > told.rindex(b"\x1b[?25l")  # the cursor is there again


def read_until(leader: int, words: bytes | None, limit_s: float = 60.0) -> bytes:
    """What came up to these words; None: up to the end."""
    told, end = b"", time.monotonic() + limit_s
    while (words is None or words not in told) and time.monotonic() < end:
        try:
            told += os.read(leader, 65536)
        except OSError:  # its other end is closed
            break
    return told
