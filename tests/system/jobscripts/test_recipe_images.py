"""The images and containers of docs/recipes/container.md, made as described and entered."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .launcher_lab import ROOT, needs_root

pytestmark = needs_root
PAGE = ROOT / "docs/recipes/container.md"
LXC = Path("/var/lib/lxc")
NAME = f"steelyard-recipe-{os.getpid()}"


# In mmdebstrap's place, which takes minutes: a few programs of this machine.
STANDS_IN = """\
#!/bin/bash
set -eu
[[ ${!#} == *.tar ]] && exec "$ROOT/tests/make_image.sh" "${!#}" true
"$ROOT/tests/make_image.sh" "$TMPDIR/stand-in.tar" true
mkdir -p "${!#}" && tar -C "${!#}" -xf "$TMPDIR/stand-in.tar"
[[ -e ${!#}/etc/os-release ]] || echo ID=test >"${!#}/etc/os-release"
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The page's second half, its names our own, its commands executed; by mmdebstrap itself when
    STEELYARD_MMDEBSTRAP is set."""
    folder = tmp_path_factory.mktemp("recipe")
    folder.chmod(0o755)
    text = PAGE.read_text(encoding="utf-8").partition("## How to make the image")[2]
    text = text.replace("my-app:1", f"{NAME}:1").replace("/srv/my-app", str(folder / "root"))
    text = text.replace("lxc:my-app", f"lxc:{NAME}").replace("lxc/my-app", f"lxc/{NAME}")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    if "STEELYARD_MMDEBSTRAP" not in os.environ:
        stand_in = folder / "bin/mmdebstrap"
        stand_in.parent.mkdir()
        stand_in.write_text(STANDS_IN)
        stand_in.chmod(0o755)
        path = f"{stand_in.parent}:{path}"
    env = {**os.environ, "PATH": path, "ROOT": str(ROOT)}
    for command in re.findall(r"^    \$ (.*)$", text, re.MULTILINE):
        kind = re.sub(r"^steelyard image make (?:(\w+):)?.*", r"\1", command)
        if kind in ("docker", "podman") and not answers(kind):
            continue
        if kind == "lxc" and shutil.which("lxc-start") is None:
            continue
        subprocess.run(["bash", "-c", command], cwd=folder, check=True, timeout=600, env=env)
    yield text
    shutil.rmtree(LXC / NAME, ignore_errors=True)


def answers(engine: str) -> bool:
    """It is here, and its daemon too where it has one."""
    return shutil.which(engine) is not None and not subprocess.run(
        [engine, "info"], capture_output=True, check=False, timeout=60
    ).returncode  # fmt: skip


def enter(launcher: str) -> None:
    """`steelyard run --in`, as the page's first half has it."""
    command = [sys.executable, "-m", "steelyard.wrappers.commands.cli", "run", "--in", launcher]
    done = subprocess.run(
        [*command, "--", "true"], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


def level(made: str, kind: str) -> str:
    """The launcher as the page names it."""
    found = re.search(rf"level `({kind}:[^`]+)`", made)
    assert found
    return found[1]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_an_image_of_debian_packages(made: str, engine: str) -> None:
    if not answers(engine):
        pytest.skip(f"{engine} does not answer on this machine: apt install {engine}")
    listed = subprocess.run(
        [engine, "image", "inspect", f"{NAME}:1"], capture_output=True, check=False, timeout=60
    )
    assert listed.returncode == 0
    if engine == "docker":
        enter(f"docker:{NAME}:1")
    subprocess.run([engine, "rmi", "--force", f"{NAME}:1"], check=True, timeout=60)


def test_a_folder_for_systemd_nspawn(made: str) -> None:
    if shutil.which("systemd-nspawn") is None:
        pytest.skip("systemd-nspawn is not on this machine: apt install systemd-container")
    enter(level(made, "systemd-nspawn"))


def test_a_container_of_lxc(made: str) -> None:
    if shutil.which("lxc-start") is None:
        pytest.skip("LXC is not on this machine: apt install lxc")
    enter(level(made, "lxc"))
