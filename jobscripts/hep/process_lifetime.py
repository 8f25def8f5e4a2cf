"""Ends a process when its parent ends."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with_parent() -> None:
    """Have this process get SIGTERM when its parent ends (prctl(2)).

    It may also be called between fork and exec: the setting survives an exec.
    """
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


def end_by_force_after(seconds: float) -> None:
    """Kill this process `seconds` after the first signal that has a handler.

    Python runs handlers only between its own instructions. A library that waits for an unreachable
    server would delay them for minutes.
    """
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end)  # the kernel's signal handler writes to it at once

    def wait() -> None:
        os.read(read_end, 1)
        time.sleep(seconds)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()
