"""A daemon like pbs_mom: starts jobs as their user with the marks, each in its own session.

Executed as `python mom.py REAP_S`. A line of JSON on stdin is an order, answered by one on stdout:
{"start": [ARG, ...], "uid": U, "environment": {...}} → its process id; {"reap": PID} → its status.
REAP_S: delay between a child's end and its wait ("ordered": only on an order).
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys


def start(
    words: list[str], uid: int, environment: dict[str, str], held: bool, late_session: bool
) -> int:
    """Start a job as Torque does: fork, run as root under the daemon's name, then the user's
    program.

    `held`: it stays root until SIGCONT.
    """
    pid = os.fork()
    if pid:
        return pid
    try:
        if not late_session:
            os.setsid()
        if held:
            os.kill(os.getpid(), signal.SIGSTOP)
        if late_session:
            os.setsid()
        null = os.open("/dev/null", os.O_RDWR)
        for fd in range(3):
            os.dup2(null, fd)
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        os.execvpe(words[0], words, environment)
    finally:
        os._exit(127)


def tell(answer: int) -> None:
    sys.stdout.write(f"{answer}\n")
    sys.stdout.flush()


def main() -> None:
    ctypes.CDLL(None).prctl(15, b"pbs_mom", 0, 0, 0)  # PR_SET_NAME
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    tell(os.getpid())
    for line in sys.stdin:
        order = json.loads(line)
        if "start" in order:
            answer = start(
                order["start"],
                order["uid"],
                order["environment"],
                order.get("held", False),
                order.get("late_session", False),
            )
        else:
            answer = os.waitpid(order["reap"], 0)[1]
        tell(answer)


if __name__ == "__main__":
    main()
