"""A server in a separate docker container on the other node."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.cluster.test_launchers_far import states, write
from tests.throwaway_lab import Lab

ROOT = Path(__file__).parents[3]
IMAGE = f"steelyard-test:far-{os.getpid()}"


@pytest.fixture
def image(tmp_path: Path) -> Iterator[str]:
    """Make an image with iperf3."""
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
