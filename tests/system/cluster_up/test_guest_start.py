"""The throwaway cluster's virtual nodes without starting any: configuration, network, refusals."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.analysis.base.errors import MissingError
from steelyard.wrappers.cluster import guest_uml
from steelyard.wrappers.cluster import network as virtual_network

ROOT = Path(__file__).resolve().parents[3]


def test_what_ip_says_is_in_the_error() -> None:
    with pytest.raises(MissingError, match="cannot be made: 'ip link show sy-none' says: .*exist"):
        virtual_network._ip("link", "show", "sy-none")


# A tracer that, as User Mode Linux, keeps the first 2696 bytes of a program's registers.
TRACER = """
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
class Area(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
libc.ptrace.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
def ask(request, pid, address=0, data=None):
    if libc.ptrace(request, pid, address, data) < 0:
        sys.exit(f"ptrace {request:#x}: {os.strerror(ctypes.get_errno())}")
child = os.fork()
if not child:
    ask(0, 0)  # PTRACE_TRACEME
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(0)
os.waitpid(child, 0)
kept = ctypes.create_string_buffer(2696)
area = Area(ctypes.addressof(kept), 2696)
ask(0x4204, child, 0x202, ctypes.byref(area))  # PTRACE_GETREGSET, NT_X86_XSTATE
kept[160:176] = bytes(range(16))  # xmm0
kept[512] = bytes([kept[512][0] | 2])  # SSE is in use
ask(0x4205, child, 0x202, ctypes.byref(area))  # PTRACE_SETREGSET
again = ctypes.create_string_buffer(2696)
area = Area(ctypes.addressof(again), 2696)
ask(0x4204, child, 0x202, ctypes.byref(area))
ask(8, child)  # PTRACE_KILL
print("kept" if again.raw[:464] == kept.raw[:464] and again.raw[576:] == kept.raw[576:] else "lost")
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="registers of x86-64")
def test_registers_that_a_guests_kernel_knows_in_part_can_be_set() -> None:
    """With AMX the kernel takes only the whole, which User Mode Linux does not have."""
    library = ROOT / "build" / "lib" / guest_uml.REGISTERS
    done = subprocess.run(
        [sys.executable, "-c", TRACER],
        env={**os.environ, "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("kept\n", "")
