"""`steelyard run` killed with -9: nothing of it runs on, and the next run finds what is left."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.processes import each_process
from tests.waiting import wait_for

from steelyard.wrappers.base import leftovers
from steelyard.wrappers.commands import cli

from .launcher_lab import docker

RUN = [sys.executable, "-P", "-m", "steelyard.wrappers.commands.cli", "run"]


def sleepers(marker: str) -> list[int]:
    """Processes `sleep MARKER`."""
    line = f"sleep\0{marker}\0".encode()
    return [pid for pid, words in each_process("cmdline") if words == line]


def marker_of(place: Path) -> str:
    """A number of seconds that no other test sleeps."""
    return f"{100 + os.getpid() % 100}.{abs(hash(str(place))) % 10**8:08}"


def clients_folders(place: Path) -> list[str]:
    """Of runs' clients; unlike rglob os.walk goes on where a folder goes away under it."""
    names = (name for _, folders, _ in os.walk(place) for name in folders)
    return [name for name in names if name.startswith("steelyard.run.0.")]


@pytest.mark.parametrize("launcher", ["bare", "unshare"])
def test_the_command_ends_with_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launcher: str
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    marker = marker_of(tmp_path)
    child = subprocess.Popen([*RUN, "--in", launcher, "--", "sleep", marker])
    wait_for("the command runs", lambda: sleepers(marker))
    child.kill()
    child.wait()
    wait_for("the command has ended", lambda: not sleepers(marker))
    wait_for("the client has tidied up", lambda: not clients_folders(tmp_path))


def test_what_a_run_leaves_that_was_killed_altogether_goes_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    marker = marker_of(tmp_path)
    words = [*RUN, "--in", "unshare", "--", "sleep", marker]
    child = subprocess.Popen(words, start_new_session=True)
    wait_for("the command runs", lambda: sleepers(marker))
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    wait_for("the command has ended", lambda: not sleepers(marker))
    assert clients_folders(tmp_path)
    assert subprocess.run([*RUN, "--", "true"], capture_output=True, check=False).returncode == 0
    assert not list(tmp_path.iterdir())


def test_folders_of_runs_that_were_killed_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not those of runs that live, of another namespace of process ids, of somebody else."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    alive = f"{os.getpid()}-{leftovers.read_start_ticks(os.getpid())}"
    gone = f"{os.getpid()}-1"
    here = leftovers.pid_namespace()
    names = [f"{alive}-{here}-a", f"{gone}-{here}-b", f"{gone}-1-c", "x", f"{gone}-{here}-d"]
    for name in names:
        (tmp_path / f"steelyard-run-{name}").mkdir()
    if os.geteuid() == 0:
        os.chown(tmp_path / f"steelyard-run-{names[4]}", 65534, 65534)
    (tmp_path / f"steelyard-run-{gone}-{here}-link").symlink_to(tmp_path)
    with leftovers.make_run_folder() as own:
        assert own.parent == tmp_path and own.is_dir()
    left = {path.name.removeprefix("steelyard-run-") for path in tmp_path.iterdir()}
    expected = {names[0], names[2], names[3], f"{gone}-{here}-link"}
    assert left == expected | ({names[4]} if os.geteuid() == 0 else set())


def test_a_container_that_was_left_is_removed_by_the_next_run(
    image: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The engine was down when its client ended."""
    name = f"steelyard-test-left-{os.getpid()}"
    label = f"--label=steelyard.study={leftovers.container_label()}"
    words = [label, f"--label=steelyard.owner={os.getpid()}:1", "--network=host"]
    docker("create", f"--name={name}", *words, image.partition(":")[2], "sleep", "60")
    try:
        assert cli.main(["run", "--in", image, "--", "sleep", "0.01"]) == 0
        assert name not in docker("ps", "--all", "--format={{.Names}}").split()
    finally:
        subprocess.run(["docker", "rm", "--force", name], capture_output=True, check=False)


def test_ctrl_c_at_a_terminal_ends_a_container_of_lxc(lxc: str, tmp_path: Path) -> None:
    """lxc-execute made the terminal raw: Ctrl-C was a letter."""
    marker = marker_of(tmp_path)
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(RUN[0], [*RUN, "--in", lxc, "--", "sleep", marker])
    try:
        wait_for("the command runs", lambda: sleepers(marker))
        os.write(terminal, b"\x03")
        wait_for("the command has ended", lambda: not sleepers(marker))
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 130
    finally:
        os.close(terminal)
