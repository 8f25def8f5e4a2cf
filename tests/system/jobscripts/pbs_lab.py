"""A job of Torque or OpenPBS as recorded, and what stands in for its pbsdsh: no server is needed."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]

# As both servers' pbsdsh: `-n INDEX -- PROGRAM …` becomes the leader of a session that has the
# scheduler's own variables and nothing else, its output is lost here, its exit code is not told,
# and SIGTERM is for all of its session.
PBSDSH = """\
#!/bin/bash
[[ $1 == -n && $3 == -- && $PBS_JOBID == {job_id} && -n $PBS_TASKNUM && -n $PBS_MOMPORT ]] || exit 1
[[ $PBS_ENVIRONMENT == PBS_BATCH && -n $PBS_JOBCOOKIE ]] || exit 1
printf '%s\\n' "$2" >>{log}
case $2 in
0) node=first ;;
2) node=sister ;;
*) exit 1 ;;
esac
mapfile -t variables <{data}/$node
setsid env -i "${{variables[@]}}" PBS_JOBID={job_id} "${{@:4}}" </dev/null &>/dev/null &
pid=$!
trap 'pkill -TERM -s "$pid"; exit 1' TERM
wait "$pid" || echo "pbsdsh(): task 0 exit status $?" >&2
exit 0
"""
# Without pbsdsh. What it is given is executed as sshd does: by a shell, in a session of its own.
SSH = """\
#!/bin/bash
[[ $1 == -o && $2 == BatchMode=yes && $3 == -- ]] || exit 255
printf '%s\\n' "$4" >>{log}
exec setsid --wait env -i PATH=/usr/bin:/bin HOME="$HOME" bash -c "$5"
"""


@dataclass(frozen=True)
class Recorded:
    """A two-node job of a dialect, of which this machine is both nodes."""

    dialect: str
    nodes: tuple[str, str]
    work: Path
    job_id: str

    @property
    def data(self) -> Path:
        return ROOT / "tests/data" / self.dialect / "environment"

    def environment(self, tm: bool = True, **more: str) -> dict[str, str]:
        """The first node's variables; the programs, and the node file, are in the work folder."""
        programs = self.work / "bin"
        programs.mkdir(exist_ok=True)
        name, text = ("pbsdsh", PBSDSH) if tm else ("ssh", SSH)
        words = {"log": self.work / "started", "data": self.data, "job_id": self.job_id}
        filled = text.format(**{k: shlex.quote(str(v)) for k, v in words.items()})
        (programs / name).write_text(filled, encoding="utf-8")
        (programs / name).chmod(0o755)
        nodefile = self.work / "nodefile"
        nodefile.write_bytes((self.data / "nodefile").read_bytes())
        lines = (self.data / "first").read_text(encoding="utf-8").splitlines()
        found = dict(line.split("=", 1) for line in lines if line.startswith("PBS_"))
        return {
            **found,
            "PBS_JOBID": self.job_id,
            "PBS_NODEFILE": str(nodefile),
            "PBS_O_PATH": f"{programs}:{found['PBS_O_PATH']}",
            "PATH": f"{programs}:/usr/bin:/bin",
            **more,
        }

    def started(self) -> list[str]:
        """What pbsdsh was asked for: the numbers of nodes; ssh: their names."""
        path = self.work / "started"
        return path.read_text(encoding="utf-8").split() if path.exists() else []
