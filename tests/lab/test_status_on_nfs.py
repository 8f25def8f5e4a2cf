"""What a status noted of ended runs, on a share of NFS: what another node changed is seen at once.

Two guests mount the share, the one looks, the other one changes files.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis.base import file_times
from steelyard.wrappers.cluster.guest import Guest
from steelyard.wrappers.submit import earlier_looks

from .conftest import Lab
from .nfs_share import MOUNT, SHARE, exported, shell

pytestmark = pytest.mark.lab
RUNS = earlier_looks.FEWEST + 20
STEELYARD = Path(sys.executable).with_name("steelyard")
PLACE = "/mnt/share"


def run_id(number: int) -> str:
    return f"b-00000000-{number:03}"


def planned(number: int) -> dict[str, Any]:
    """A run of plan.json."""
    return {
        "run_id": run_id(number), "block": 1, "position": number, "benchmark": "b",
        "parameters": {}, "variant": "b", "condition": {}, "condition_label": "no factors",
        "is_baseline": True, "repeat": number,
    }  # fmt: skip


def write_result(folder: Path, state: str, start_unix_s: float) -> None:
    """An attempt that ended."""
    folder.mkdir(parents=True)
    result = {
        "format": "steelyard-run", "version": 1, "run_id": folder.parent.name,
        "attempt": folder.name, "job_id": folder.name.partition(".")[0], "clients": 1,
        "start_unix_s": start_unix_s, "end_unix_s": start_unix_s + 1, "elapsed_s": 1.0,
        "exit_codes": [0], "state": state, "reason": None, "nodes": ["n1"], "tries": [],
    }  # fmt: skip
    (folder / "result.json").write_text(json.dumps(result))


def make(folder: Path) -> None:
    """A study whose runs have all ended well."""
    runs = [planned(number) for number in range(RUNS)]
    plan = {"format": "steelyard-plan", "version": 1, "study": {"name": "s"}, "runs": runs}
    folder.mkdir()
    (folder / "plan.json").write_text(json.dumps(plan))
    for number in range(RUNS):
        write_result(folder / "runs" / run_id(number) / "1.0", "completed", 1000.0)


@dataclass
class Shared:
    """The study, the node that looks at it, and another one."""

    here: Guest
    there: Guest
    study: str

    def counts(self) -> tuple[int, int, int]:
        """Runs that are done, that failed, and that have not begun, as a status says here."""
        said = json.loads(
            shell(self.here, f"{STEELYARD} status --json {self.study} || test $? = 5")
        )
        return said["done"], said["failed"], said["planned"]

    def noted(self) -> int:
        """Runs in the notes, as the other node sees them."""
        text = shell(self.there, f"cat {self.study}/{earlier_looks.FILE}")
        return len(json.loads(text.partition("\n")[2])["runs"])


@pytest.fixture(params=MOUNT)
def shared(virtual_lab: Lab, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shared]:
    nodes = [virtual_lab.cluster.guest(name) for name in ("v1", "v2")]
    make(tmp_path / "s.study")
    with exported(virtual_lab, "no_root_squash") as server:
        shell(server, f"cp -r {tmp_path}/s.study {SHARE}/")
        try:
            for node in nodes:
                shell(node, f"mkdir -p {PLACE} && mount {MOUNT[request.param]} {PLACE}")
            yield Shared(*nodes, f"{PLACE}/s.study")
        finally:
            for node in nodes:
                shell(node, f"umount -l {PLACE} || true")
    shutil.rmtree(tmp_path / "s.study")


def test_what_another_node_changed_is_seen_at_once(shared: Shared) -> None:
    time.sleep(file_times.RACE_NS / 1e9 + 0.5)  # what was just written is not noted
    assert shared.counts() == (RUNS, 0, 0)
    assert shared.noted() == RUNS
    assert shared.counts() == (RUNS, 0, 0)
    runs = f"{shared.study}/runs"
    # Of the same size and, but for the inode's own, the same times.
    changed = f"{runs}/{run_id(7)}/1.0/result.json"
    other = f"""sed 's/"completed"/"failed"   /' {changed} >/tmp/other"""
    put = f"cp -p {changed} /tmp/kept && {other} && cat /tmp/other >{changed}"
    shell(shared.there, f"{put} && touch -r /tmp/kept {changed}")
    sizes = shell(shared.there, f"stat -c '%s %Y' {changed} /tmp/kept").splitlines()
    assert sizes[0] == sizes[1]
    assert shared.counts() == (RUNS - 1, 1, 0)
    again = f"{runs}/{run_id(8)}"
    later = "s/1000/2000/; s/1001/2001/; s/completed/timeout/"
    begin = f"cp -r {again}/1.0 {again}/.new && sed -i '{later}' {again}/.new/result.json"
    shell(shared.there, f"{begin} && mv {again}/.new {again}/2.0")
    assert shared.counts() == (RUNS - 2, 2, 0)
    shell(shared.there, f"rm -r {runs}/{run_id(9)}")
    assert shared.counts() == (RUNS - 3, 2, 1)
