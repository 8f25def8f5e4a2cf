"""`steelyard image make`: results, refusals, and leftovers of an interrupted one.

No mirror is contacted: a script replaces mmdebstrap.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.processes import each_process
from tests.unit.launchers.test_image_build import notes as notes  # noqa: PLC0414 - a fixture
from tests.waiting import wait_for

from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.commands import cli
from steelyard.wrappers.launchers import image_build

Capture = pytest.CaptureFixture[str]
can_unshare = subprocess.run(
    ["unshare", "--mount", "--pid", "--fork", "true"]
    if os.geteuid() == 0
    else [*image_build.AS_ROOT_OF_ONES_OWN, "true"],
    capture_output=True,
    check=False,
)
makes = pytest.mark.skipif(
    can_unshare.returncode != 0, reason="no namespaces here: neither root nor lines in /etc/subuid"
)


def parts(folder: Path) -> list[str]:
    """Return the parts of an unfinished image."""
    return [path.name for path in folder.iterdir() if path.name.startswith(image_build.PART)]


@makes
def test_a_folder_is_made_once_and_replaced_when_that_is_said(
    tmp_path: Path, notes: Path, capsys: Capture
) -> None:
    place = tmp_path / "root"
    words = ["image", "make", f"apptainer:{place}", "--include=iperf3,fio"]
    words += ["--benchmark=hpl", "--suite=trixie", "--mirror=http://m/debian", "--json"]
    assert cli.main(words) == 0
    told = notes.read_text().splitlines()
    assert told[:3] == ["--mode=root", "--variant=minbase", "--include=openmpi-bin,iperf3,fio,hpcc"]
    assert (told[3], told[5]) == ("trixie", "http://m/debian")
    document = json.loads(capsys.readouterr().out)
    assert (document["path"], document["suite"]) == (str(place), "trixie")
    assert document["size_bytes"] > 0
    mark = json.loads((place / image_build.MARK).read_text())
    assert mark["packages"] == ["openmpi-bin", "iperf3", "fio", "hpcc"]
    (place / "old").touch()
    assert cli.main(words) == 2
    assert "is there already: name another place, or add --force" in capsys.readouterr().err
    assert (place / "old").exists()
    assert cli.main([*words, "--force"]) == 0
    assert not (place / "old").exists() and (place / "etc/os-release").exists()
    assert parts(tmp_path) == []


@makes
@pytest.mark.parametrize(
    ("suite", "message"),
    [
        ("lost", "Unable to locate package nonesuch: expected packages of Debian lost"),
        (
            "full",
            "tar: ./2: Cannot write: No space left on device: make room on the file system of",
        ),
    ],
)
def test_what_fails_leaves_nothing_and_says_what_to_do(
    tmp_path: Path, notes: Path, suite: str, message: str
) -> None:
    asked = image_build.read_request(str(tmp_path / "root"), "apptainer", suite, (), None, False)
    with pytest.raises(MissingError) as caught:
        image_build.make_image(asked, print)
    assert message in str(caught.value)
    assert not (tmp_path / "root").exists() and parts(tmp_path) == []
    assert notes.exists()


def slow_ones(folder: Path) -> list[int]:
    """Processes of one that is being made below a folder."""
    mark = f"={folder}/{image_build.PART}".encode()
    return [pid for pid, environment in each_process("environ") if mark in environment]


@makes
@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGKILL])
def test_one_that_is_killed_ends_with_all_it_started(
    tmp_path: Path, notes: Path, sign: signal.Signals
) -> None:
    command = [sys.executable, "-P", "-m", "steelyard.wrappers.commands.cli", "image", "make"]
    command += [f"apptainer:{tmp_path}/root", "--suite=slow"]
    half: Callable[[], object] = lambda: notes.exists() and list(tmp_path.glob(".*/*"))
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as child:
        wait_for("it is half made", half)
        child.send_signal(sign)
    wait_for("nothing of it runs on", lambda: not slow_ones(tmp_path))
    assert child.returncode == (143 if sign == signal.SIGTERM else -9)
    assert not (tmp_path / "root").exists()
    assert len(parts(tmp_path)) == (sign == signal.SIGKILL)
    assert cli.main(["image", "make", f"apptainer:{tmp_path}/root"]) == 0  # the next tidies up
    assert parts(tmp_path) == []
