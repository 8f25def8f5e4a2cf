"""What a status noted of ended runs, on a share of NFS: what another node changed is seen at once.

Two guests mount the share, the one looks, the other one changes files.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.guests.nodes.nfs_share import MOUNT, SHARE, exported, shell
from tests.throwaway_lab import Lab
from tests.unit.submit.ended_study import planned
from tests.unit.submit.paper_slurm import finish

from steelyard.analysis.base import file_changes
from steelyard.wrappers.cluster.guest_control import Guest
from steelyard.wrappers.submit import run_state

RUNS = run_state.FEWEST + 20
STEELYARD = Path(sys.executable).with_name("steelyard")
PLACE = "/mnt/share"


def make(folder: Path) -> None:
    """A study whose runs have all ended well."""
    runs = [planned(number) for number in range(1, RUNS + 1)]
    plan = {"format": "steelyard-plan", "version": 1, "study": {"name": "s"}, "runs": runs}
    folder.mkdir()
    (folder / "plan.json").write_text(json.dumps(plan))
    for run in runs:
        finish(folder / "runs" / run["run_id"], "1.0")


@dataclass
class Shared:
    """The study, the node that looks at it, and another one."""

    here: Guest
    there: Guest
    study: str

    def counts(self) -> tuple[int, int, int]:
        """Return the numbers of finished, failed and pending runs in a status."""
        said = json.loads(
            shell(self.here, f"{STEELYARD} status --json {self.study} || test $? = 5")
        )
        return said["done"], said["failed"], said["planned"]

    def noted(self) -> int:
        """Return the runs in the notes, as the other node sees them."""
        text = shell(self.there, f"cat {self.study}/{run_state.CACHE_FILE}")
        return len(json.loads(text.partition("\n")[2])["runs"])


@pytest.fixture(params=MOUNT)
def shared(virtual_lab: Lab, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shared]:
    nodes = [virtual_lab.cluster.find_guest(name) for name in ("v1", "v2")]
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


def test_what_another_node_changed_is_seen_at_once(shared: Shared) -> None:
    time.sleep(file_changes.RACE_NS / 1e9 + 0.5)  # what was just written is not noted
    assert shared.counts() == (RUNS, 0, 0)
    assert shared.noted() == RUNS
    assert shared.counts() == (RUNS, 0, 0)
    one, two, three = (f"{shared.study}/runs/{planned(n)['run_id']}" for n in (1, 2, 3))
    # Of the same size and, but for the inode's own, the same times.
    changed = f"{one}/1.0/result.json"
    other = f"""sed 's/"completed"/"failed"   /' {changed} >/tmp/other"""
    put = f"cp -p {changed} /tmp/kept && {other} && cat /tmp/other >{changed}"
    shell(shared.there, f"{put} && touch -r /tmp/kept {changed}")
    sizes = shell(shared.there, f"stat -c '%s %Y' {changed} /tmp/kept").splitlines()
    assert sizes[0] == sizes[1]
    assert shared.counts() == (RUNS - 1, 1, 0)
    later = "s/1000.0/2000.0/; s/1002.0/2002.0/; s/completed/timeout/"
    begin = f"cp -r {two}/1.0 {two}/.new && sed -i '{later}' {two}/.new/result.json"
    shell(shared.there, f"{begin} && mv {two}/.new {two}/2.0")
    assert shared.counts() == (RUNS - 2, 2, 0)
    shell(shared.there, f"rm -r {three}")
    assert shared.counts() == (RUNS - 3, 2, 1)
