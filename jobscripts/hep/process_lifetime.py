"""A process that does not outlive the one that started it."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with_parent() -> None:
    """From now on this process gets SIGTERM when its parent ends (prctl(2)).

    Between fork and exec it may be called too: the setting survives an exec.
    """
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


def end_by_force_after(seconds: float) -> None:
    """A signal that has a handler ends this process after that time at the latest.

    Python runs handlers between its own instructions only: a library that waits for a server that
    is gone would hold them up for minutes.
    """
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell)  # written to at once, whatever else goes on

    def wait() -> None:
        os.read(told, 1)
        time.sleep(seconds)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()
