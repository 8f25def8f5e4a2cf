"""Two nodes of Torque in a private folder: our scripts in each mom_priv, called as recorded."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.processes import each_process
from tests.system.job.conftest import TIMEOUT_S

from steelyard.wrappers.base.programs import find_node_program

TOP = Path(__file__).parents[3]
SOURCES = TOP / "plugins/torque"
DUMPS = TOP / "tests/data/torque/dumps"
MOM = Path(__file__).with_name("mom.py")
NOBODY = 65534
# By recorded id: a job id of this test process. A node program finds a job's processes by PBS_JOBID
# and user, which concurrent tests share.
JOB_IDS = {"203.vm": f"203{os.getpid()}.vm", "0.vm": f"1{os.getpid()}.vm"}
NETEM_KEYS = "delay loss duplicate corrupt reorder rate limit rto_min to port dev direction"


def render(source: str, target: Path, prefix: Path, config: Path) -> Path:
    """Render a script as `make` installs it."""
    text = (SOURCES / source).read_text()
    for word, value in (("PREFIX", prefix), ("CONFIG", config), ("NETEM_KEYS", NETEM_KEYS)):
        text = text.replace(f"@{word}@", str(value))
    target.write_text(text)
    target.chmod(0o755)
    return target


def put_program(prefix: Path) -> None:
    folder = prefix / "libexec/steelyard"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy2(find_node_program(), folder / "steelyard-node")


@dataclass
class Recorded:
    """The arguments of a script on a real node."""

    words: list[str]
    environment: dict[str, str]


def recorded(name: str) -> Recorded:
    text = (DUMPS / name).read_text()
    words = [
        (shlex.split(value) or [""])[0]
        for value in re.findall(r"^argv\[\d+\]=(.*)$", text, re.MULTILINE)
    ]
    environment = text.partition("--- env\n")[2].partition("--- stdin")[0]
    lines = (line.partition("=") for line in environment.splitlines())
    return Recorded(words[1:], {key: value for key, _, value in lines if key not in ("_", "PWD")})


@dataclass
class Node:
    """One node: its mom, and the scripts that it calls."""

    base: Path
    name: str
    around: tuple[str, ...] = ()
    process: subprocess.Popen[str] = field(init=False)

    def __post_init__(self) -> None:
        (self.mom_priv / "jobs").mkdir(parents=True)
        (self.mom_priv.parent / "server_name").write_text("localhost\n")
        subprocess.run(
            [SOURCES / "install.sh", "put", self.base / "pelog", self.mom_priv], check=True
        )
        program = self.base / "sbin/pbs_mom"  # qstat is searched next to it
        if not program.exists():
            program.parent.mkdir()
            shutil.copy2(Path(sys.executable).resolve(), program)
        self.process = subprocess.Popen(
            [*self.around, program, MOM, "-A", self.name], cwd=self.mom_priv,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        (self.mom_priv / "mom.lock").write_text(f"{self.answer()}\n")

    @property
    def mom_priv(self) -> Path:
        return self.base / self.name / "mom_priv"

    @property
    def output(self) -> Path:
        return self.base / self.name / "output"

    def answer(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def order(self, **words: Any) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def pelog(self, script: str, given: Recorded, **more: Any) -> Any:
        """Return a script's exit status; if a job is started, its process id, too."""
        words = given.words[:-1] + [
            str(self.mom_priv / "jobs" / f"{given.words[0]}.SC") for _ in given.words[-1:]
        ]
        return self.order(
            pelog=[str(self.mom_priv / script), *words], environment=given.environment,
            output=str(self.output), **more,
        )  # fmt: skip


@dataclass
class Cluster:
    """Both nodes, with a folder of records that they share."""

    base: Path
    around: tuple[str, ...] = ()  # a command that starts the moms
    around_sister: tuple[str, ...] | None = None  # another one for the sister's
    first: Node = field(init=False)
    sister: Node = field(init=False)

    def __post_init__(self) -> None:
        put_program(self.base)
        self.records.mkdir()
        render("pelog.sh", self.base / "pelog", self.base, self.config)
        self.turn_on()
        other = self.around if self.around_sister is None else self.around_sister
        self.first = Node(self.base, "vm", self.around)
        self.sister = Node(self.base, "vmb", other)

    @property
    def config(self) -> Path:
        return self.base / "pbs.conf"

    @property
    def records(self) -> Path:
        return self.base / "records"

    @property
    def run(self) -> Path:
        return self.base / "run"

    def turn_on(self, *more: str) -> None:
        lines = [f"record_dir={self.records}", f"run_dir={self.run}", "rate=5", "bpf=no", *more]
        self.config.write_text("".join(f"{line}\n" for line in lines))

    def given(self, dump: str, job: str = "", **changed: str) -> Recorded:
        """Return recorded arguments for this cluster's job: with its `resources`, `name` and the
        like.
        """
        found = recorded(dump)
        places = {"user": 1, "group": 2, "name": 3, "resources": 5 if "epilogue" in dump else 4}
        found.words[places["user"]] = "nobody"
        found.words[0] = job or JOB_IDS.get(found.words[0], found.words[0])
        for key, value in changed.items():
            found.words[places[key]] = value
        nodefile = self.base / "nodefile"
        nodefile.write_text("vm\n" + ("vmb\n" if "203" in dump else ""))
        if "PBS_NODEFILE" in found.environment:
            found.environment["PBS_NODEFILE"] = str(nodefile)
        return found

    def record_of(self, job: str, node: str) -> dict[str, Any]:
        (path,) = (
            p for p in (self.records / job).iterdir()
            if re.fullmatch(rf"{node}\.\d+\.json", p.name)
        )  # fmt: skip
        document = json.loads(path.read_bytes())
        assert isinstance(document, dict)
        return document

    def left(self) -> list[str]:
        """Return the content of the run folder and notes between nodes, without logs and locks."""
        found = [path for path in self.run.rglob("*") if not path.is_dir()]
        found += list(self.records.glob(".answer*"))
        return sorted(path.name for path in found if path.suffix not in (".log", ".lock") and path.name != ".lock")  # fmt: skip

    def samplers(self) -> list[str]:
        said = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
        return [line for line in said.stdout.splitlines() if f"--run-dir {self.run}" in line]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    if os.geteuid() != 0:
        pytest.skip("runs prologues as pbs_mom does: needs root")
    tmp_path.chmod(0o755)
    tool = Cluster(tmp_path)
    yield tool
    for node in (tool.first, tool.sister):
        for path in (tool.run / "job").glob(f"{node.name}.*.json"):
            words = [
                "job",
                "end",
                "--job-id",
                path.name[len(node.name) + 1 : -5],
                "--node",
                node.name,
            ]
            subprocess.run([find_node_program(), *words, "--config", tool.config], timeout=TIMEOUT_S, check=False)  # fmt: skip
        node.process.kill()
        node.process.communicate()
    end_jobs()


def end_jobs() -> None:
    """End the processes of a failed test: a stopped one would never end."""
    marks = {f"PBS_JOBID={job}".encode() for job in JOB_IDS.values()}
    for pid, environment in each_process("environ"):
        if marks & set(environment.split(b"\0")):
            os.kill(pid, signal.SIGKILL)
