"""A recorded job of Torque or OpenPBS, and a replacement for its pbsdsh: no server is needed."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]

# Like pbsdsh of both servers: `-n INDEX -- PROGRAM …` becomes the leader of a session with only the
# scheduler's variables. Its output is lost here, its exit code is not reported, and SIGTERM goes to
# all of its session.
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
# Without pbsdsh: sshd executes its argument with a shell, in a separate session.
SSH = """\
#!/bin/bash
[[ $1 == -o && $2 == BatchMode=yes && $3 == -- ]] || exit 255
printf '%s\\n' "$4" >>{log}
exec setsid --wait env -i PATH=/usr/bin:/bin HOME="$HOME" bash -c "$5"
"""


@dataclass(frozen=True)
class Recorded:
    """A two-node job of a dialect; this machine is both nodes."""

    dialect: str
    nodes: tuple[str, str]
    work: Path
    job_id: str

    @property
    def data(self) -> Path:
        return ROOT / "tests/data" / self.dialect / "environment"

    def environment(self, tm: bool = True, **more: str) -> dict[str, str]:
        """Return the first node's variables; programs and node file are in the work folder."""
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
        """Return the requests of pbsdsh, node numbers; for ssh, node names."""
        path = self.work / "started"
        return path.read_text(encoding="utf-8").split() if path.exists() else []
