"""A daemon like Torque's pbs_mom: runs prologues and epilogues as it does, as root.

Executed as `python mom.py -A NAME`, in mom_priv; orders and answers are lines of JSON. {"pelog":
[ARG, ...], "environment": {...}, "output": FILE} runs a script in a child, as for a sister's or an
epilogue → its exit status. With "job": [ARG, ...], "uid", "marks", a child runs the prologue and
becomes the job, as on the first node → [status, process id of the child]. With "kill_after_s" the
script is killed. {"reap": PID} → its status.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

MEMORY = b"x" * (100 << 20)  # pbs_mom 6.1.3 locks 115 MB, and so do its forks at their start


def run(order: dict[str, Any]) -> int:
    with Path(order["output"]).open("ab") as output:
        script = subprocess.Popen(
            order["pelog"], env=order["environment"], stdin=subprocess.DEVNULL, stdout=output,
            stderr=output, start_new_session=True, close_fds=False,
        )  # fmt: skip
        try:
            return script.wait(order.get("kill_after_s"))
        except subprocess.TimeoutExpired:
            script.send_signal(signal.SIGKILL)
            return script.wait()


def become(words: list[str], uid: int, environment: dict[str, str]) -> None:
    null = os.open("/dev/null", os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    os.execvpe(words[0], words, environment)


def launch(order: dict[str, Any]) -> list[int]:
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            status = run(order)
            os.write(theirs, str(status).encode())
            os.close(theirs)
            if status == 0:
                become(order["job"], order["uid"], order["marks"])
        finally:
            os._exit(127)
    os.close(theirs)
    status = int(os.read(ours, 20))
    os.close(ours)
    return [status, pid]


def say(answer: Any) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def main() -> None:
    ctypes.CDLL(None).prctl(15, b"pbs_mom", 0, 0, 0)  # PR_SET_NAME
    say(os.getpid())
    for line in sys.stdin:
        order = json.loads(line)
        if "reap" in order:
            answer: Any = os.waitpid(order["reap"], 0)[1]
        else:
            answer = launch(order) if "job" in order else run(order)
        say(answer)


if __name__ == "__main__":
    main()
