"""Runs the hook as PBS does: a separate process, in mom_priv/hooks/tmp, in locale C."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from steelyard.wrappers.base.programs import find_node_program

REPOSITORY = Path(__file__).parents[3]
DUMPS = REPOSITORY / "tests/data/openpbs/dumps"
HOST = Path(__file__).with_name("pbs_host.py")
USER = 65533
VALUE = re.compile(r"^  job\.(\w+) (=|\{)")


def recorded(event: str) -> Iterator[dict[str, Any]]:
    """Yield the data that a hook got at each event of that name on a real server."""
    text = (DUMPS / f"hook.{event}.txt").read_text()
    for block in re.split(r"\n(?=event )", text):
        job: dict[str, Any] = {}
        said: dict[str, Any] = {"event": event, "job": job, "in_ms": False, "job_list": []}
        for line in block.splitlines():
            if found := re.match(r"job\.id (\S*) name (\S*) euser (\S+) egroup (\S+)", line):
                job.update(zip(("id", "Job_Name", "euser", "egroup"), found.groups(), strict=True))
            elif found := re.match(r"  job\.(\w+) (?:= )?(['{].*)$", line):
                try:
                    value = ast.literal_eval(found[2])
                except SyntaxError:
                    return  # the recording ends here
                job[found[1]] = None if value == "None" else value
            elif line.startswith("  in_ms_mom True"):
                said["in_ms"] = True
            elif line.startswith("  job_list "):
                said["job_list"] = ast.literal_eval(line.removeprefix("  job_list "))
        variables = job.get("Variable_List")
        if variables:
            job["Variable_List"] = dict(v.split("=", 1) for v in variables.split(","))
        if "Resource_List" in job or event.startswith("EXECHOST"):
            yield said


@pytest.fixture(scope="session")
def hook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hook") / "steelyard_hook.py"
    joined = subprocess.run(
        [REPOSITORY / "plugins/openpbs/join.sh"], capture_output=True, check=True, timeout=30
    )
    path.write_bytes(joined.stdout)
    return path


@dataclass
class Mom:
    """The home of a mom with a hook."""

    home: Path
    hook: Path
    config: dict[str, Any]
    python: str = sys.executable
    more: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.home / "mom_priv/hooks/tmp").mkdir(parents=True)
        (self.home / "spool").mkdir()
        (self.home / "user").mkdir()
        self.records.mkdir()

    @property
    def records(self) -> Path:
        return self.home / "records"

    def run(self, said: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Run the hook for an event; return its actions."""
        config = self.home / "steelyard.CF"
        config.write_text(json.dumps(self.config))
        whole = {
            "config": str(config), "node": "vm", "server": "vm", "requestor": "labpbs",
            "vnodes": {"vm": 4}, "users": {"labpbs": USER}, "home": str(self.home / "user"),
            "broken": [], "in_ms": True, "job_list": [], **said, **more,
        }  # fmt: skip
        (self.home / "event.json").write_text(json.dumps(whole))
        answer = self.home / "answer.json"
        answer.unlink(missing_ok=True)
        done = subprocess.run(
            [self.python, HOST, self.hook, self.home / "event.json", answer],
            cwd=self.home / "mom_priv/hooks/tmp", capture_output=True, timeout=60, check=False,
            env={"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PATH": os.environ["PATH"]},
        )  # fmt: skip
        assert (done.returncode, done.stderr.decode()) == (0, "")
        told = json.loads(answer.read_text())
        assert isinstance(told, dict)
        assert told["accepted"] != (told["refused"] is not None)
        return told

    def record(self, job_id: str) -> dict[str, Any]:
        (path,) = (self.records / job_id).glob("*.json")
        told = json.loads(path.read_text())
        assert isinstance(told, dict)
        return told


@pytest.fixture
def mom(tmp_path: Path, hook: Path) -> Iterator[Mom]:
    if os.getuid() != 0:
        pytest.skip("a mom's hooks run as root; these tests do not")
    tmp_path.chmod(0o755)
    home = tmp_path / "mom"
    folders = {"record_dir": str(home / "records"), "run_dir": str(home / "run")}
    made = Mom(home, hook, {"node_program": str(find_node_program()), "bpf": "no", **folders})
    yield made
    for state in (home / "run/job").glob("*.json"):
        job_id = state.name.removeprefix("vm.").removesuffix(".json")
        where = [f"--{key.replace('_', '-')}={value}" for key, value in folders.items()]
        subprocess.run(
            [find_node_program(), "job", "end", f"--job-id={job_id}", "--node=vm", *where],
            check=True, capture_output=True, timeout=30,
        )  # fmt: skip


def job(**more: Any) -> dict[str, Any]:
    """Return a job like the recorded ones, with one of four processors."""
    (first, *_) = recorded("EXECJOB_BEGIN")
    return {**first["job"], "Variable_List": {"A": "b"}, "Resource_List": {"place": "pack"}, **more}
