"""A process with children, like those of a step's daemon: started, waited for, ended."""

from __future__ import annotations

import subprocess
import sys

# A root with children: each burns `cpu_s` and writes 1 MB, then waits for a line.
CHILD = """
import os, sys, time
end = time.process_time() + {cpu_s}
while time.process_time() < end: pass
open("/dev/null", "wb", buffering=0).write(bytes(1 << 20))
os.write(1, b"ready\\n")
sys.stdin.readline()
"""


def start_root(children: int, cpu_s: float = 0.0, child: str = CHILD) -> subprocess.Popen[bytes]:
    script = (
        "import subprocess, sys\n"
        f"c = [subprocess.Popen([sys.executable, '-c', {child.format(cpu_s=cpu_s)!r}])"
        f" for _ in range({children})]\n"
        "[p.wait() for p in c]\nsys.stdin.readline()"
    )
    return subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def wait_ready(root: subprocess.Popen[bytes], children: int) -> None:
    assert root.stdout is not None
    for _ in range(children):
        assert root.stdout.readline() == b"ready\n"


def end_root(root: subprocess.Popen[bytes], children: int) -> None:
    assert root.stdin is not None and root.stdout is not None
    root.stdin.write(b"\n" * (children + 1))
    root.stdin.close()
    root.wait(30)
    root.stdout.close()
