"""`make demo` where no virtual node can be started, and what the README shows of it."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.report import answer
from steelyard.analysis.summary.summary import Summary
from steelyard.wrappers.base import errors
from steelyard.wrappers.cluster import cluster, guest_start, guest_uml
from steelyard.wrappers.cluster.cluster_config import ClusterConfig
from steelyard.wrappers.cluster.daemons import ClusterError
from steelyard.wrappers.commands import demo

ROOT = Path(__file__).parents[3]
CHECK_HOST = guest_start._check_host
BEGUN = datetime(2026, 11, 23, 12, 0, 0, tzinfo=UTC)


@dataclass
class Started:
    """In place of a cluster: what was to be started, refused as the real one refuses."""

    configs: list[ClusterConfig] = field(default_factory=list)
    studies: list[str] = field(default_factory=list)
    death: Exception | None = None  # of a guest, while it starts
    slurm: Exception | None = None  # of every cluster

    def up(self, config: ClusterConfig) -> Started:
        cluster.check_config(config)
        if self.slurm or (config.guests and self.death):
            raise self.slurm or self.death or AssertionError
        self.configs.append(config)
        return self

    def variables(self) -> Mapping[str, str]:
        return {}

    def run(self, _demo: demo.Demo, names: list[str]) -> int:
        self.studies += names
        return errors.CONDITION  # there is nothing to answer


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """A machine where guests could start, for all that is checked before."""
    found = Started()
    monkeypatch.setattr(cluster, "find_plugin", lambda: (Path("/plugin"), Path("/node")))
    monkeypatch.setattr(cluster, "start_cluster", found.up)
    monkeypatch.setattr(demo, "_run_studies", found.run)
    monkeypatch.setattr(guest_start, "_check_host", lambda config: None)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return found


@pytest.fixture
def root() -> Iterator[Path]:
    """A short name, as there are to be Unix sockets below it."""
    with tempfile.TemporaryDirectory(prefix="sydemo-", dir="/tmp") as folder:
        yield Path(folder)


def begin(root: Path) -> int:
    return demo._demo(demo.Demo(root, BEGUN))


def test_with_a_guest_it_asks_for_virtual_nodes_and_distance(
    started: Started, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert begin(root) == errors.CONDITION
    (config,) = started.configs
    assert (config.physical_nodes, config.virtual_nodes, config.guests) == (1, 0, 1)
    assert config.nfs and config.shares == (root / "demo/2026-11-23T12-00-00",)
    assert started.studies == ["virtual", "distance"]
    assert "demo:" not in capsys.readouterr().out


def why_not(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line beside the commands."""
    lines = [line for line in capsys.readouterr().out.splitlines() if line]
    (line,) = [line for line in lines if not line.startswith(("$ ", "n1, "))]
    return line


def test_a_user_without_root_is_told_so_in_one_line(
    started: Started,
    root: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert begin(root) == errors.CONDITION
    assert "demo: no virtual node here: virtual nodes need root" in why_not(capsys)
    assert started.studies == ["clients"]
    assert [config.guests for config in started.configs] == [0]


def test_what_the_machine_lacks_is_named(
    started: Started,
    root: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guest_start, "_check_host", CHECK_HOST)
    monkeypatch.setattr(guest_uml, "PROGRAMS", {"no-such-kernel": "user-mode-linux"})
    begin(root)
    line = why_not(capsys)
    assert "no-such-kernel" in line and "install --no-install-recommends user-mode-linux" in line
    assert started.studies == ["clients"]


def test_a_guest_that_dies_costs_one_line_and_not_the_demo(
    started: Started, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    started.death = ClusterError("guest v1 died; it says last:\nKernel panic\nand more")
    begin(root)
    assert why_not(capsys) == (
        "demo: no virtual node here: guest v1 died; it says last. So it asks what a second client "
        "costs."
    )
    assert started.studies == ["clients"]


def test_where_slurm_is_missing_it_ends(started: Started, root: Path) -> None:
    started.slurm = MissingError("no slurmctld")
    with pytest.raises(MissingError, match="no slurmctld"):
        begin(root)
    assert not started.studies


def test_a_bug_is_no_reason_to_ask_something_else(started: Started, root: Path) -> None:
    started.death = KeyError("guest")
    with pytest.raises(KeyError):
        begin(root)
    assert not started.studies


def test_a_second_demo_does_not_end_the_first(started: Started, root: Path) -> None:
    (root / "demo").mkdir()
    with (
        demo._lock_demo(root / "demo"),
        pytest.raises(errors.UsageError, match="another demo is at work"),
    ):
        begin(root)
    assert not started.configs


def test_a_folder_of_somebody_else_is_named(
    started: Started, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as within:
        within.setattr(Path, "mkdir", refused)  # root may write anywhere
        with pytest.raises(errors.UsageError, match=f"may not write to {root}/demo"):
            begin(root)
    assert not started.configs


def test_the_readme_shows_what_the_recording_holds() -> None:
    """Each line of its block, in the recording's order; `…` stands for what is left out."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    recorded = iter((ROOT / "docs/quick-start.txt").read_text(encoding="utf-8").splitlines())
    (block,) = re.findall(r"```\n(\$ make demo\n.*?)```", readme, re.DOTALL)
    shown = [line for line in block.splitlines() if line not in ("", "…")]
    assert len(shown) > 10
    for line in shown:
        assert line in recorded, f"the recording has no line '{line}' here"


def test_the_picture_has_the_numbers_of_the_recording() -> None:
    """docs/demo.svg: `make docs` draws it."""
    texts = re.findall(r"<text[^>]*>([^<]*)", (ROOT / "docs/demo.svg").read_text(encoding="utf-8"))
    recorded = (ROOT / "docs/quick-start.txt").read_text(encoding="utf-8")
    report = recorded.partition("virtual: 24 of 24 runs")[2].partition("\nfindings:")[0]
    times = re.findall(r"    (?:seconds|elapsed_s) +(\S+) times as long \((\S+) … (\S+)\)", report)
    assert len(times) >= 3
    for of_baseline in times:
        value, low, high = (f"{100 * (float(one) - 1):.0f}" for one in of_baseline)
        assert f"+{value} % ({low} … {high})" in texts


@pytest.mark.parametrize(("vm", "said"), [("uml", "not of KVM"), ("kvm", "what KVM costs on this")])
def test_the_answer_says_what_kind_of_guest_it_is_about(
    demo_summary: Summary, monkeypatch: pytest.MonkeyPatch, vm: str, said: str
) -> None:
    monkeypatch.setattr(answer, "describe_elapsed_times", lambda _summary: [])
    groups = [replace(group, condition={"node_type": "virtual"}) for group in demo_summary.groups]
    records = [replace(record, vm=vm) for record in demo_summary.data.records]
    meta = replace(demo_summary.data.meta, factors={"node_type": ["physical", "virtual"]})
    data = replace(demo_summary.data, records=records, meta=meta)
    (sentence,) = demo._describe_nodes(replace(demo_summary, groups=groups, data=data))
    assert said in sentence
