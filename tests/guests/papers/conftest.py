"""A cluster of one host node and three virtual ones, on which the four papers are reproduced."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.guests.nodes.netem_guests import address
from tests.throwaway_lab import Lab, until, virtual_config

from steelyard.wrappers.cluster import cluster as throwaway

HERE = Path(__file__).parent
REPORTS = HERE.parents[2] / "build/papers"  # `tests/run.sh papers` stores the reports there
GUESTS = ("v1", "v2", "v3")
LIMIT_S = 1500.0  # per study; all four take half an hour
PASSED = 3  # repeats in the studies of this folder


@dataclass(frozen=True)
class Told:
    """A study that was run, and its report."""

    rows: list[dict[str, Any]]
    slopes: list[dict[str, Any]]
    claims: dict[str, str]  # verdict by a claim's text
    printed: list[dict[str, Any]]  # the paper's numbers with ours
    text: str  # the report on a terminal

    def row(self, metric: str, *words: str) -> dict[str, Any]:
        """Return the only row of a metric whose variant and condition contain these words."""
        (found,) = [
            row
            for row in self.rows
            if row["metric"] == metric
            and {*words} <= {*f"{row['variant']} {row['condition']}".replace(", ", " ").split()}
        ]
        return found


@dataclass(frozen=True)
class Papers:
    """The cluster, and studies on it."""

    lab: Lab
    network: str  # addresses of the guests only

    def run(self, name: str, paper: str, spoil: Callable[[], bool] = lambda: True) -> Told:
        """Submit, wait, collect, and report the comparison with the paper.

        `spoil` is called until it succeeds.
        """
        text = (HERE / f"{name}.toml").read_text(encoding="utf-8")
        file = f"{name}.toml"
        text = text.replace("{guests}", self.network).replace("{folder}", str(self.lab.work))
        (self.lab.work / file).write_text(text, encoding="utf-8")
        self.lab.steelyard("check", file)
        self.lab.steelyard("submit", file)
        spoilt = False

        def is_over() -> bool:
            nonlocal spoilt
            spoilt = spoilt or spoil()
            return not self.lab.queued()

        until(is_over, f"{name} ends", LIMIT_S, self.seen(file))
        assert spoilt
        self.lab.collect(file)
        REPORTS.mkdir(parents=True, exist_ok=True)
        options = ("--beside", paper, "-o", str(REPORTS / f"{name}.html"))
        text = self.lab.steelyard("report", file, *options)
        (REPORTS / f"{name}.txt").write_text(text)
        found = json.loads(self.lab.steelyard("report", file, "--beside", paper, "--json"))
        claims = {one["words"]: one["verdict"] for one in found["beside"]["claims"]}
        return Told(found["rows"], found["slopes"], claims, found["beside"]["printed"], text)

    def seen(self, file: str) -> Any:
        """Return a study's progress, for the message of a timeout."""
        return lambda: self.lab.ours("status", file).stdout


@pytest.fixture(scope="session")
def papers_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[throwaway.Cluster]:
    """Start n1, v1 to v3; each guest has its own meter, so that joules exist."""
    with tempfile.TemporaryDirectory(prefix="sypap-", dir="/tmp") as folder:
        Path(folder).chmod(0o711)
        config = virtual_config(Path(folder) / "c", (tmp_path_factory.getbasetemp(),))
        config = replace(config, guests=len(GUESTS), nfs=False, memory_mb=512)
        with throwaway.start_cluster(config) as running:
            for name in GUESTS:
                start_meter(running, name)
            yield running


def start_meter(cluster: throwaway.Cluster, name: str) -> None:
    """Run meter.py in a guest until its end. These joules are synthetic."""
    guest = cluster.find_guest(name)
    text = (HERE / "meter.py").read_text(encoding="utf-8")
    script = "cat >/run/meter.py; setsid python3 /run/meter.py </dev/null >/run/meter.log 2>&1 &"
    guest.run(["sh", "-c", script], text=text)
    file = "/run/steelyard-meters/lab/node.meter"
    until(lambda: guest.run(["test", "-s", file]).returncode == 0, f"{name}'s meter tells")


@pytest.fixture
def papers(papers_cluster: throwaway.Cluster, tmp_path: Path) -> Iterator[Papers]:
    """The cluster for one paper."""
    lab = Lab(papers_cluster, tmp_path)
    network = address(papers_cluster, "v1").rpartition(".")[0]
    yield Papers(lab, f"{network}.8/29")
    lab.cancel()
    lab.wait_nodes("idle", what="every node is idle again")
