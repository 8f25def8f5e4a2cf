"""Clients that must not outlive their run, whatever a library does with them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

# A mutex that is locked twice: no signal interrupts that, as none interrupts a library that waits.
HELD = """
import ctypes, signal, sys
from steelyard.jobscripts.hep.process_lifetime import end_by_force_after
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
end_by_force_after(0.2)
mutex, lock = ctypes.create_string_buffer(64), ctypes.CDLL(None).pthread_mutex_lock
lock(mutex)
print("held", flush=True)
lock(mutex)
"""


def test_a_signal_ends_a_client_that_a_library_holds() -> None:
    program = [sys.executable, "-P", "-c", HELD]
    with subprocess.Popen(program, stdout=subprocess.PIPE) as client:
        assert client.stdout is not None and client.stdout.readline() == b"held\n"
        time.sleep(0.5)  # it is in the second lock
        client.send_signal(signal.SIGTERM)
        assert client.wait(30) == -signal.SIGKILL
