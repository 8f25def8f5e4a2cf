"""Of runs in docker, podman and LXC that are killed with -9, whenever that is, nothing is left after the
sweep; and what others have there stays."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.processes import each_process
from tests.waiting import wait_for

from .launcher_lab import OWN, needs_root, processes
from .test_left import LEFT, Place, kill, place, tidy  # noqa: F401 # a fixture

if TYPE_CHECKING:
    from tests.system.jobscripts.conftest import Study

pytestmark = needs_root
GROUPS = Path("/sys/fs/cgroup")
MARK = "/run/steelyard-containers/steelyard-*-*"
# As the engine, but what it is to run it only makes; then all of the run is killed with -9.
ENGINE = """#!/bin/bash
case " $* " in *' run '*) ;; *) exec PROGRAM "$@" ;; esac
words=()
for word; do
    [[ $word != run ]] || word=create
    words+=("$word")
done
PROGRAM "${words[@]}"
kill -s KILL 0
"""
Look = Callable[[], list[str]]


class Killed:
    """A study in a launcher, with a private path for its engine's data."""

    def __init__(self, place: Place, study: Study, level: str, environment: dict[str, str]) -> None:  # noqa: F811
        self.place, self.study, self.level = place, study, level
        self.environment = environment
        tidy(place)
        study.body("sleep 55.125" + OWN)

    def sweep(self) -> str:
        settings = [f"{key}={value}" for key, value in self.environment.items()]
        return self.place("env", *settings, LEFT, "sweep")

    def marked(self) -> list[str]:
        return self.place("bash", "-c", f"grep -h . {MARK} || :").splitlines()

    def at(self, moment: Callable[[], object]) -> list[str]:
        """Start it, kill it at that moment, and return its mark."""
        with self.place.started(self.study, self.level, "5.server", **self.environment):
            wait_for("the moment", moment, poll_s=0.002)
            self.kill_monitors()
            kill(self.study)
        wait_for("nobody watches over a container", lambda: not self.kill_monitors())
        return self.marked()

    def kill_monitors(self) -> list[int]:
        """LXC's, which overwrites its environment with its title: `[lxc monitor] PATH NAME`."""
        names = [line[4:].encode() for line in self.marked() if line.startswith("lxc ")]
        found = [
            pid
            for pid, words in each_process("cmdline")
            if words.startswith(b"[lxc monitor]") and any(name in words for name in names)
        ]
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return found

    def made_only(self, program: str, folder: Path) -> list[str]:
        """As `at`, killed between an engine's making of a container and its start."""
        folder.mkdir()
        text = ENGINE.replace("PROGRAM", str(shutil.which(program)))
        (folder / program).write_text(text, encoding="utf-8")
        (folder / program).chmod(0o700)
        words = {**self.environment, "PATH": f"{folder}:{os.environ['PATH']}"}
        with self.place.started(self.study, self.level, "6.server", **words) as child:
            assert child.wait(timeout=60) == -signal.SIGKILL
        return self.marked()


def measures() -> list[str]:
    return processes("55.125" + OWN)


Everything = Callable[[list[str]], list[str]]


def swept(run: Killed, lines: list[str], word: str, everything: Everything) -> None:
    assert any(line.startswith(f"{word} ") for line in lines), lines
    run.sweep()
    assert (run.marked(), everything(lines)) == ([], [])
    assert not measures()


def check(run: Killed, others: Look, everything: Everything, word: str) -> None:
    """Killed when it is marked, when something is made, and when it measures. Not while podman
    starts: a process of its that waits to be a container may stay (docs/launchers.md)."""
    kept = others()
    assert len(kept) == 2

    def marked() -> bool:
        return any(line.startswith(f"{word} ") for line in run.marked())

    starts = () if "podman" in run.level else (marked, lambda: everything(run.marked()))
    for moment in (*starts, measures):
        lines = run.at(moment)
        swept(run, lines, word, everything)
        assert others() == kept


def test_lxc(place: Place, study: Study, lxc: str) -> None:  # noqa: F811
    """Its cgroups, two in every hierarchy; others' are there before and after, one named as ours are."""
    run = Killed(place, study, lxc, {})
    top = GROUPS / "freezer" if (GROUPS / "freezer").is_dir() else GROUPS
    names = (f"lxc.payload.steelyard-{os.getpid()}-1", f"lxc.payload.keep-{os.getpid()}")
    folders = [top / name for name in names]

    def everything(lines: list[str]) -> list[str]:
        names = [line[4:] for line in lines if line.startswith("lxc ")]
        words = [word for name in names for word in ("-o", "-name", f"lxc.*.{name}")]
        found = subprocess.run(
            ["find", GROUPS, "-false", *words], capture_output=True, text=True, check=False
        )
        return found.stdout.split()

    for folder in folders:
        folder.mkdir()
    try:
        check(run, lambda: [str(f) for f in folders if f.is_dir()], everything, "lxc")
    finally:
        for folder in folders:
            folder.rmdir()


def engine_check(run: Killed, program: str, image: str) -> None:
    """Check its containers; those of a living owner, and those without our label, remain."""

    def engine(*words: str) -> str:
        settings = [f"{key}={value}" for key, value in run.environment.items()]
        return run.place("env", *settings, program, *words)

    def listed(label: str) -> list[str]:
        return sorted(engine("ps", "--all", "--quiet", f"--filter=label={label}").split())

    # By name: an engine may not take the folder's name, which is odd, for a filter.
    def mine(lines: list[str]) -> list[str]:
        names = [line.split()[2] for line in lines if line.startswith("container ")]
        found = engine("ps", "--all", "--format={{.Names}}").split()
        return [name for name in found if name in names]

    for_others = f"test.steelyard={os.getpid()}"
    made = [
        engine("create", f"--label={for_others}", *labels, image, "bash").split()[-1]
        for labels in ([], [f"--label=steelyard.owner={os.getpid()}:1"])
    ]
    try:
        check(run, lambda: listed(for_others), mine, "container")
        kept = listed(for_others)
        lines = run.made_only(program, run.study.scratch / "programs")
        assert len(mine(lines)) == 1
        swept(run, lines, "container", mine)
        # What has no mark, as ordinary users' have none, goes with the study's next run.
        lines = run.made_only(program, run.study.scratch / "others")
        run.place("bash", "-c", f"rm {MARK}")
        next_run(run, program)
        assert (mine(lines), listed(for_others)) == ([], kept)
    finally:
        engine("rm", "--force", *made)


def next_run(run: Killed, program: str) -> None:
    """What it does before its container; the study's folder has an odd name."""
    script = '. "$1/lib/steelyard.sh" && SY_LAUNCHER_KIND=$2 SY_STUDY_DIR=$1 && sy_launcher_sweep_leftovers'
    settings = [f"{key}={value}" for key, value in run.environment.items()]
    words = ["env", *settings, "bash", "-c", script, "bash", str(run.study.folder), program]
    run.place(*words)


def test_docker(place: Place, study: Study, image: str) -> None:  # noqa: F811
    """Of this machine's daemon, whose door is not in the place's /run."""
    door = os.environ.get("DOCKER_HOST", f"unix:///proc/{os.getpid()}/root/run/docker.sock")
    engine_check(
        Killed(place, study, image, {"DOCKER_HOST": door}),
        "docker",
        image.partition(":")[2],
    )


def test_podman_of_root(place: Place, study: Study, image_tar: Path, tmp_path: Path) -> None:  # noqa: F811
    """It has a private storage."""
    if shutil.which("podman") is None:
        pytest.skip("apt install podman")
    storage = tmp_path / "storage.conf"
    where = f'graphroot = "{tmp_path}/graph"\nrunroot = "/run/steelyard-podman"\n'
    storage.write_text(f'[storage]\ndriver = "vfs"\n{where}')
    # Root without all of its rights, as in a container, may not raise limits (docs/launchers.md).
    limits = tmp_path / "containers.conf"
    limits.write_text('[containers]\ndefault_ulimits = ["nproc=1000:1000", "nofile=1000:1000"]\n')
    environment = {"CONTAINERS_STORAGE_CONF": str(storage), "CONTAINERS_CONF": str(limits)}
    name = f"localhost/steelyard-left:{os.getpid()}"
    run = Killed(place, study, f"podman:{name}", environment)
    settings = [f"{key}={value}" for key, value in environment.items()]
    place("env", *settings, "podman", "import", image_tar, name)
    engine_check(run, "podman", name)
