"""Loss between containers of two nodes, in a guest, whose kernel has netem: verified where it holds."""

from __future__ import annotations

import re
from pathlib import Path

from tests.system.network.test_launcher_condition import Seen, argv, seen
from tests.throwaway_lab import Lab

from steelyard.wrappers.cluster.config import Layout


def in_guest(lab: Lab, folder: Path, told: str, change: str = "true") -> Seen:
    """Whose kernel has netem; it sees the test's folder."""
    node = str(Layout(lab.cluster.dir).lib_dir / "steelyard-node")
    words = argv(folder, node, told, None, change, False)
    return seen(lab.cluster.guest("v1").run(words, timeout_s=150))


def test_a_loss_that_holds_is_verified_and_is_what_did_not_arrive(
    virtual_lab: Lab, tmp_path: Path
) -> None:
    found = in_guest(virtual_lab, tmp_path, "loss=20%")
    assert found.code == 0, found.said
    counted = re.fullmatch(
        r"verified: (\d+) of (\d+) packets between containers of two nodes were lost", found.tag
    )
    assert counted, found.tag
    lost, sent = map(int, counted.groups())
    assert sent - lost == found.received
    assert 0.12 * sent < lost < 0.28 * sent


def test_another_loss_ends_the_run(virtual_lab: Lab, tmp_path: Path) -> None:
    change = "tc qdisc change dev up0 parent 57e1:2 handle 5802: netem limit 1000 loss 10%"
    found = in_guest(virtual_lab, tmp_path, "loss=20%", change)
    assert (found.code, found.tag) == (4, "")
    assert re.search(
        r"of \d+ packets between its containers \d+ were lost, which loss=20%", found.said
    )
