"""One client on two nodes, in a container on each: MPI ranks and servers are inside there too."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Lab, command_line, processes_of, until

pytestmark = pytest.mark.lab
ROOT = Path(__file__).parents[2]
IMAGE = f"steelyard-test:far-{os.getpid()}"
LIMITED = "unshare,cpus=1,memory=1GiB"
STUDY = """
[study]
name = "far"
repeat = 1
[job]
nodes = 2
time_limit = "00:02:00"
[factors]
launcher = [{launchers}]
[[benchmark]]
{benchmark}
"""
# A program of MPI's as a user has it: it notes where its ranks are, and is ours then.
PROGRAM = """\
#!/bin/bash
printf '%s %s\\n' "$OMPI_COMM_WORLD_RANK" "$(readlink /proc/self/ns/pid)" >>"$0.${SY_LAUNCHER:-bare}"
exec "$STEELYARD_NPB" cg --class S
"""


def write(lab: Lab, benchmark: str, *launchers: str) -> str:
    """The study's file name."""
    listed = ", ".join(f'"{one}"' for one in launchers)
    text = STUDY.format(launchers=listed, benchmark=benchmark)
    (lab.work / "far.toml").write_text(text, encoding="utf-8")
    return "far.toml"


def states(lab: Lab, file: str) -> dict[str, str]:
    """Submitted, ended and collected: how the run of each launcher ended."""
    lab.steelyard("submit", file)
    until(lambda: " 0 running, 0 waiting" in lab.steelyard("status", file), "the end", 180)
    lab.collect(file)
    found = lab.rows(
        "far",
        "SELECT condition->>'launcher', coalesce(reason, state) FROM runs "
        "WHERE state = 'failed' OR run_id IN (SELECT run_id FROM results)",
    )
    return dict(found)


def left_over(lab: Lab) -> list[str]:
    """Processes that have the study's folder in their command line."""
    pids = (int(path.name) for path in Path("/proc").glob("[0-9]*"))
    mark = str(lab.work / "far.study")
    return [line for pid in pids if pid != os.getpid() and mark in (line := command_line(pid))]


def test_ranks_on_the_other_node_are_in_a_container_there(lab: Lab) -> None:
    folder = lab.work / "programs"
    folder.mkdir()
    (folder / "cg.S.2").write_text(PROGRAM)
    (folder / "cg.S.2").chmod(0o755)
    benchmark = f'use = "npb"\nkernel = "cg"\nclass = "S"\nranks = 2\nfolder = "{folder}"'
    found = states(lab, write(lab, benchmark, "bare", LIMITED))
    assert found == {"bare": "completed", LIMITED: "completed"}
    here = str(Path("/proc/self/ns/pid").readlink())
    for launcher, count in (("bare", 1), (LIMITED, 2)):
        lines = (folder / f"cg.S.2.{launcher}").read_text().splitlines()
        assert sorted(line.split()[0] for line in lines) == ["0", "1"]
        spaces = {line.split()[1] for line in lines}
        assert len(spaces) == count
        assert (here in spaces) == (launcher == "bare")
    until(
        lambda: not left_over(lab),
        "nothing of the study runs any more",
        seen=lambda: left_over(lab),
    )


@pytest.fixture
def image(tmp_path: Path) -> Iterator[str]:
    """With iperf3 in it."""
    if (
        shutil.which("docker") is None
        or subprocess.run(["docker", "version"], capture_output=True, check=False).returncode
    ):
        pytest.skip("docker does not answer on this machine: apt install docker.io, start dockerd")
    programs = ("env", "mktemp", "mkfifo", "grep", "iperf3", "setpriv", "tr", "timeout")
    tar = tmp_path / "image.tar"
    subprocess.run([ROOT / "tests/make_image.sh", tar, *programs], check=True, timeout=60)
    subprocess.run(["docker", "import", tar, IMAGE], check=True, timeout=60)
    yield f"docker:{IMAGE}"
    subprocess.run(["docker", "rmi", "--force", IMAGE], check=True, timeout=60)


def test_a_server_on_the_other_node_is_in_its_own_container(lab: Lab, image: str) -> None:
    found = states(lab, write(lab, 'use = "iperf3"\nseconds = 1\nomit = 0', f"{image},cpus=1"))
    assert found == {f"{image},cpus=1": "completed"}
    names = [
        "docker",
        "ps",
        "--all",
        "--quiet",
        f"--filter=label=steelyard.study={lab.work}/far.study",
    ]
    assert subprocess.run(names, capture_output=True, check=True).stdout == b""


def test_a_cancelled_run_leaves_nothing_on_either_node(lab: Lab) -> None:
    file = write(lab, 'use = "iperf3"\nseconds = 100\nomit = 0', "unshare")
    lab.steelyard("submit", file)
    until(lambda: running(lab, "iperf3", "--client"), "the client measures")
    assert running(lab, "iperf3", "--server")
    lab.steelyard("cancel", file)
    until(lambda: not running(lab, "iperf3", "--client"), "the client has ended")
    until(lambda: not running(lab, "iperf3", "--server"), "the server has ended")
    until(
        lambda: not left_over(lab),
        "nothing of the study runs any more",
        seen=lambda: left_over(lab),
    )


def running(lab: Lab, *words: str) -> bool:
    """Whether a process of the test's jobs has these words in its command line."""
    for pid in processes_of(lab.work):
        line = command_line(pid).split()
        if all(word in line for word in words):
            return True
    return False
