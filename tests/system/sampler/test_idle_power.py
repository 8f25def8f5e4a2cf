"""/etc/steelyard/node.conf: the report of `steelyard doctor` agrees with the sampler's use."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import pytest

from steelyard.wrappers.base.doctor_check import Check
from steelyard.wrappers.base.programs import find_node_program
from steelyard.wrappers.doctor import local_node

NODE = platform.node().split(".")[0]
FILE = "/etc/steelyard/node.conf"
LINE = "/etc/steelyard/node.conf, line"

# A file, and its watts or the words of why there are none; "fault": it must be mended.
TABLE = [
    ("idle_power 62\n", 62.0, ""),
    (f"idle_power no-such-* 310\r\n\tidle_power {NODE} 0.5 # by IPMI\n", 0.5, ""),
    ("idle_power 1e3", "fault", f"{LINE} 1: expected idle_power WATTS"),
    ("# x\n\nidle_power 62 W", "fault", f"{LINE} 3: expected idle_power WATTS"),
    ("idle_power 62\nidle_watts 62", "fault", f"{LINE} 2: unknown key idle_watts"),
    ("idle_power 62\nidle_power nan", "fault", f"{LINE} 2: expected"),
    ("idle_power", "fault", f"{LINE} 1: expected"),
    ("idle_power 1.2.3", "fault", f"{LINE} 1: expected"),
    ("idle_power .", "fault", f"{LINE} 1: expected"),
    ("idle_power 1000000.5", "fault", "at most 1000000"),
    ("#" * 65536, "fault", "longer than 65535 bytes"),
    ("idle_power no-such-* 310", "none", "says no idle_power of this node"),
    ("", "none", "says no idle_power of this node"),
]


def doctor(root: Path) -> list[Check]:
    return local_node.query_program(find_node_program(), "--only=idle power", f"--root={root}")


def tree(tmp_path: Path, text: str | None) -> Path:
    folder = tmp_path / "tree" / "etc" / "steelyard"
    folder.mkdir(parents=True)
    if text is not None:
        (folder / "node.conf").write_bytes(text.encode())
    return tmp_path / "tree"


@pytest.mark.parametrize(("text", "watts", "words"), TABLE)
def test_doctor_and_record_agree(
    sampler: Any, tmp_path: Path, text: str, watts: float | str, words: str
) -> None:
    root = tree(tmp_path, text)
    (check,) = doctor(root)
    record = sampler.attach("--root", root, "--node", NODE).end()
    if isinstance(watts, float):
        assert (check.state, check.found) == ("ok", f"{watts:g} W ({FILE})")
        assert record["energy"]["idle_w"] == watts
        return
    assert check.state == ("warning" if watts == "fault" else "ok")
    assert check.found == record["missing"]["energy.idle_w"]
    assert words in check.found
    assert ("mend that file" in check.advice) == (watts == "fault")


def test_nothing_is_said_of_no_file(tmp_path: Path) -> None:
    assert doctor(tree(tmp_path, None)) == []


def test_a_folder_in_its_place_is_a_fault(tmp_path: Path) -> None:
    root = tree(tmp_path, None)
    (root / "etc" / "steelyard" / "node.conf").mkdir()
    (check,) = doctor(root)
    assert check.state == "warning" and "node.conf: " in check.found
