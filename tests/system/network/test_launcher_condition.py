"""Loss and rate between containers of two nodes: verified where they hold, by what the node's queue
counts, and the run ends where they do not. The truth is the other container's: what it received."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from tests.waiting import wait_for

from steelyard.jobscripts import registry

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and qdiscs need root"),
]
BETWEEN = Path(__file__).with_name("launcher_between.sh")
NODE = os.environ.get("STEELYARD_NODE") or str(BETWEEN.parents[3] / "build/bin/steelyard-node")
# Network namespaces have names: in a /run/netns of its own.
ALONE = (
    "unshare", "--net", "--mount", "bash", "-c",
    'mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns && exec bash "$@"', "between",
)  # fmt: skip


class Seen(NamedTuple):
    """What the run would have done."""

    code: int
    tag: str
    said: str
    received: int  # datagrams
    transfer: int  # bit/s of a TCP transfer afterwards, less headers; 0: none was asked for


def argv(
    folder: Path, node: str, told: str, applied: str | None, change: str, transfer: bool
) -> list[str]:
    library = folder / "library.sh"
    library.write_text(registry.library(), encoding="utf-8")
    shutil.copy(BETWEEN, folder)
    script = folder / BETWEEN.name
    words = [str(script), str(library), node, str(folder), applied or told, told, change]
    return [*ALONE, *words, *(["transfer"] if transfer else [])]


def seen(done: subprocess.CompletedProcess[str]) -> Seen:
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return Seen(found["code"], found["tag"], done.stderr, found["received"], found["transfer"])


def here(
    folder: Path,
    told: str,
    applied: str | None = None,
    change: str = "true",
    transfer: bool = False,
) -> Seen:
    """On this machine, whose kernel may be without netem: rates by tbf."""
    words = argv(folder, NODE, told, applied, change, transfer)
    return seen(subprocess.run(words, capture_output=True, text=True, timeout=90, check=False))


def decided(folder: Path, told: str, **more: Any) -> Seen:
    """A busy machine may leave a rate open, and says so: until it does not."""
    numbers = itertools.count()

    def answer() -> Seen | None:
        at = folder / str(next(numbers))
        at.mkdir()
        found = here(at, told, **more)
        return None if "the rate could not be told to 5 %" in found.tag else found

    return cast(Seen, wait_for("the rate is told to 5 %", answer))


def test_a_rate_that_holds_is_verified(tmp_path: Path) -> None:
    """And is what a transfer gets afterwards: of a segment of 1514 bytes 1448 are the program's."""
    found = decided(tmp_path, "rate=10mbit", transfer=True)
    assert found.code == 0, found.said
    told = re.fullmatch(
        r"verified: with a full queue (\d+) to (\d+) kbit/s passed between containers of two nodes",
        found.tag,
    )
    assert told, found.tag
    least, most = map(int, told.groups())
    assert 9_500 <= least <= most <= 10_500
    assert 0.90 * least < found.transfer / 1000 * 1514 / 1448 < 1.05 * most


@pytest.mark.parametrize("other", ["20mbit", "7mbit"])
def test_another_rate_ends_the_run(tmp_path: Path, other: str) -> None:
    tbf = f"tbf rate {other} burst 20000 limit 3000000"
    change = f"tc qdisc change dev up0 parent 57e1:2 handle 5802: {tbf}"
    found = decided(tmp_path, "rate=10mbit", change=change)
    assert (found.code, found.tag) == (4, "")
    last = "kbit/s passed between its containers: rate=10mbit is not in force\n"
    assert found.said.endswith(last)


def test_a_queue_that_was_taken_away_ends_the_run(tmp_path: Path) -> None:
    found = here(tmp_path, "rate=10mbit", change="tc qdisc delete dev up0 root")
    assert (found.code, found.tag) == (4, "")
    assert "rate=10mbit is not in force on a: tc qdisc show" in found.said


def test_a_condition_that_leaves_the_containers_out_ends_the_run(tmp_path: Path) -> None:
    """Its packets are not counted for anybody's: their addresses are not the nodes'."""
    found = here(tmp_path, "rate=10mbit,to=10.9.0.0/24")
    assert (found.code, found.tag) == (4, "")
    assert "holds for its nodes and not for its containers" in found.said


def test_a_condition_for_others_is_told_to_be_none(tmp_path: Path) -> None:
    found = here(tmp_path, "rate=10mbit,to=10.77.0.0/16", applied="rate=10mbit,to=10.77.0.0/16")
    assert (found.code, found.said) == (0, "")
    assert found.tag.startswith("none: what the nodes send each other does not meet it")
