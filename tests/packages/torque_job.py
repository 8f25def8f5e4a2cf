"""A job of Torque without its server: torque_job.py MOM_PRIV USER [CONDITION…]

mom.py (tests/system/torque) is copied next to this file; it is a daemon like pbs_mom. It runs the
installed prologue, becomes a job that reports its own CPU time, and runs the epilogue, with the
arguments that a real pbs_mom passed (tests/data/torque/dumps). Prints a line of JSON: both exit
codes, and the job's own `cpu_s`.
"""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
from pathlib import Path
from typing import Any

JOB = "7.server"
NODE = os.uname().nodename.partition(".")[0]
BURN = """
import sys, time
while time.process_time() < 1: pass
with open(sys.argv[1], "w") as file: file.write(str(time.process_time()))
"""


class Mom:
    """Sends orders and reads answers, a line of JSON each."""

    def __init__(self, mom_priv: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("mom.py")], cwd=mom_priv,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.pid = self.answer()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def order(self, **words: Any) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        return self.answer()


def main() -> None:
    mom_priv, user = Path(sys.argv[1]), sys.argv[2]
    nodefile, said = Path("/tmp/nodefile"), Path("/tmp/cpu_s")
    nodefile.write_text(f"{NODE}\n")
    own = {"PBS_JOBID": JOB, "PBS_NODENUM": "0", "PATH": "/usr/bin:/bin"}
    told = own | {"PBS_MSHOST": NODE, "PBS_NODEFILE": str(nodefile)}
    del told["PBS_JOBID"]
    mom, script = Mom(mom_priv), str(mom_priv / f"jobs/{JOB}.SC")
    given: dict[str, Any] = {"environment": told, "output": "/tmp/pelog.out"}
    names = [JOB, user, user, "name"]
    status, pid = mom.order(
        pelog=[str(mom_priv / "prologue"), *names, "neednodes=1", "batch", "account", script],
        job=[sys.executable, "-c", BURN, str(said)], uid=pwd.getpwnam(user).pw_uid, marks=own,
        **given,
    )  # fmt: skip
    ended = mom.order(reap=pid)
    after = mom.order(
        pelog=[str(mom_priv / "epilogue"), *names, "1", "neednodes=1", "cput=1", "batch",
               "account", "0", script], **given,
    )  # fmt: skip
    found = {"prologue": status, "job": ended, "epilogue": after}
    print(json.dumps(found | {"cpu_s": float(said.read_text())}))  # noqa: T201


if __name__ == "__main__":
    main()
