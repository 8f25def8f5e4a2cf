"""Only a scheduler's own files depend on it; another one needs no change elsewhere.

The other one belongs to the test, with only the parts of Torque that its recorded log and these
checks need.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from steelyard.analysis.sources import accounting_readers as readers
from steelyard.analysis.sources.pbs.accounting import Pbs
from steelyard.wrappers.base.doctor_check import Check
from steelyard.wrappers.commands import cli
from steelyard.wrappers.netem import program as netem
from steelyard.wrappers.schedulers import registry
from steelyard.wrappers.schedulers.available_nodes import AvailableNodes
from steelyard.wrappers.schedulers.base import Batch, Scheduler, Submission, Task
from steelyard.wrappers.study.table_reader import Table

ROOT = Path(__file__).resolve().parents[3]
NAMES = {"slurm", "local", "pbs", "torque", "openpbs"}
SHARED = {"base", "registry", "ledger", "available_nodes"}
# Slurm's own, in other rooms: the throwaway cluster, and its jobs as `calibrate` measures them.
SLURMS_OWN = ("wrappers/schedulers/", "wrappers/cluster/", "wrappers/calibrate/")


def trees() -> Iterator[tuple[str, ast.Module]]:
    for top in ("wrappers", "analysis"):
        for path in sorted((ROOT / top).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def asks_for_a_name(tree: ast.AST) -> Iterator[int]:
    """Return the lines that compare with a scheduler's name, or have it in a `case`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare | ast.MatchValue):
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and part.value in NAMES:
                    yield node.lineno if isinstance(node, ast.Compare) else part.lineno


def test_nobody_asks_for_a_name() -> None:
    assert list(asks_for_a_name(ast.parse('a = "slurm" in b\nif x.name == "local": pass'))) == [
        1,
        2,
    ]
    found = [f"{name}:{line}" for name, tree in trees() for line in asks_for_a_name(tree)]
    assert found == []


def test_nobody_imports_a_scheduler() -> None:
    """They import only what they share: base, registry, ledger and available_nodes."""
    found = []
    for name, tree in trees():
        for node in ast.walk(tree):
            if name.startswith(SLURMS_OWN) or not isinstance(node, ast.ImportFrom):
                continue
            _, room, module = (node.module or "").partition("steelyard.wrappers.schedulers")
            names = {module.strip(".")} - {""} or {alias.name for alias in node.names}
            if room and not names <= SHARED:
                found.append(f"{name}:{node.lineno}")
    assert found == []


def test_who_ends_children_first_is_one_of_them() -> None:
    assert registry.ENDS_CHILDREN_FIRST
    assert registry.CLASSES.keys() >= registry.ENDS_CHILDREN_FIRST


def test_every_method_is_asked_for() -> None:
    """Code that knows no scheduler calls it: an uncalled method would be unnecessary."""
    asked = "".join(
        (ROOT / name).read_text(encoding="utf-8")
        for name, _ in trees()
        if name.startswith("wrappers/") and Path(name).stem not in registry.CLASSES
    )
    unasked = [name for name in Scheduler.__abstractmethods__ if f".{name}(" not in asked]
    assert unasked == [] and len(Scheduler.__abstractmethods__) > 10


# --- another one: jobs 0.vm and 1.vm of the log, whose runs are started here as the job would -----

LOG = ROOT / "tests/data/torque/accounting-mixed.log"
IDS = ["0.vm", "1.vm"]  # as qsub told them
STUDY = """
[study]
name = "two"
repeat = 1
[factors]
network = ["none", "delay=50ms"]
node_type = ["virtual"]
[place.virtual]
torque = "-l nodes={nodes}:virtual"
slurm = "--constraint=vm"
[[benchmark]]
use = "app"
command = "echo $SY_ATTEMPT"
"""


class Torque(Scheduler):
    """Submits each run as a separate job."""

    name = "torque"

    def __init__(self, study_dir: Path, patient: bool = True) -> None:
        super().__init__(study_dir, patient)
        self.ids = iter(IDS)

    @classmethod
    def is_installed(cls) -> bool:
        return False

    @classmethod
    def run_checks(cls) -> Iterator[Check]:
        yield Check("Torque", "warning", "qsub is not in PATH")

    @classmethod
    def check_options(cls, table: Table, key: str, options: Sequence[str]) -> None:
        if any(option.startswith("-t") for option in options):
            table.fail(key, "Steelyard sets -t itself")

    def cluster_name(self) -> str | None:
        return "vm"

    def place_options(self, level: str, given: Sequence[str] | None, nodes: int) -> list[str]:
        return [" ".join(given or ()).replace("{nodes}", str(nodes))]

    def node_options(self, node: str) -> list[str]:
        return [f"-l nodes={node}"]

    def condition_options(self, condition: Mapping[str, object]) -> list[str]:
        asked = netem.make_conditions(condition)
        return [f"-v STEELYARD_NETEM={asked.network}"] if asked.shapes else []

    def selects_nodes(self, batch: Batch) -> bool:
        return True

    def available_nodes(self, batch: Batch) -> AvailableNodes:
        return AvailableNodes("nodes that nothing is known of", ())

    def node_features(self) -> dict[str, frozenset[str]]:
        return {}

    def max_runs(self) -> int | None:
        return 1

    def render_script(self, batch: Batch, after: str | None) -> str:
        lines = [f"#PBS {option}" for option in (f"-N {batch.job_name}", *batch.options)]
        run = batch.study_dir / "runs" / batch.run_ids[0] / "run.sh"
        return "\n".join(["#!/bin/bash", *lines, f"exec bash '{run}'", ""])

    def submit(self, batch: Batch, script: Path) -> str | None:
        return next(self.ids)

    def find_submission(self, batch: Batch, since_unix_s: float) -> str | None:
        return None

    def active_runs(self, submissions: Sequence[Submission]) -> dict[str, Task]:
        return {}

    def ended_runs(self, submissions: Sequence[Submission]) -> dict[str, Task]:
        """Return the ended runs of the log's records of ends."""
        ends = dict(re.findall(r";E;([^;]+);.* Exit_status=(-?\d+)", LOG.read_text()))
        return {
            entry.run_ids[0]: Task("completed" if ends[entry.job_id] == "0" else "failed",
                                   f"exit status {ends[entry.job_id]}", entry.job_id)
            for entry in submissions if entry.job_id in ends
        }  # fmt: skip

    def cancel(self, submissions: Sequence[Submission]) -> None:
        pass


@pytest.fixture
def torque(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line in each registry; the accounting: its job 1.vm was deleted."""
    logs = tmp_path / "accounting"
    logs.mkdir()
    (logs / "20261121").write_bytes(LOG.read_bytes())
    monkeypatch.setenv("STEELYARD_PBS_ACCOUNTING", str(logs))
    monkeypatch.setitem(registry.CLASSES, "torque", "Torque")
    monkeypatch.setitem(sys.modules, "steelyard.wrappers.schedulers.torque", sys.modules[__name__])
    monkeypatch.setitem(readers.READERS, "torque", Pbs)


def test_a_place_that_the_scheduler_does_not_take_is_refused(
    torque: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "two.toml"
    file.write_text(STUDY.replace("-l nodes={nodes}:virtual", "-t1"), encoding="utf-8")
    assert cli.main(["submit", str(file), "--scheduler", "slurm"]) == 2  # whoever calls it
    assert "place.virtual.torque: Steelyard sets -t itself" in capsys.readouterr().err
