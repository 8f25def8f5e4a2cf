"""Clients that must not outlive their run, whatever a library does with them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.waiting import wait_for

# A mutex that is locked twice: no signal interrupts that, as none interrupts a library that waits.
HELD = """
import ctypes, signal, sys
from steelyard.jobscripts.hep.process_lifetime import end_by_force_after
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
end_by_force_after(0.2)
mutex, lock = ctypes.create_string_buffer(64), ctypes.CDLL(None).pthread_mutex_lock
lock(mutex)
print(hex(ctypes.addressof(mutex)), flush=True)
lock(mutex)
"""


def test_a_signal_ends_a_client_that_a_library_holds() -> None:
    program = [sys.executable, "-P", "-c", HELD]
    with subprocess.Popen(program, stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        mutex = client.stdout.readline().decode().strip()
        call = Path(f"/proc/{client.pid}/syscall")  # its number and its arguments
        wait_for("it is in the second lock", lambda: call.read_text().split()[1:2] == [mutex])
        client.send_signal(signal.SIGTERM)
        assert client.wait(90) == -signal.SIGKILL
