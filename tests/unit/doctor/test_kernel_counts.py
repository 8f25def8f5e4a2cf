"""What `steelyard doctor` says of jobs that the kernel is to count."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from steelyard.wrappers.schedulers.slurm import kernel_counts

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "build/bin/steelyard-bpf"
SAYS = "the kernel counts what jobs use"


def said(**more: Any) -> dict[str, Any]:
    return {"able": True, "walk": True, "root": True, "says": SAYS} | more


@pytest.mark.parametrize(
    ("line", "switched"),
    [
        ("optional /x/spank_steelyard.so rate=1 bpf=yes\n", "yes"),
        ("# optional /x/spank_steelyard.so bpf=yes\noptional /x/spank_steelyard.so bpf=no\n", "no"),
        ("optional /x/spank_steelyard.so rate=1 # bpf=yes\n", "no"),
        ("optional /x/spank_steelyard.so\noptional /x/other.so bpf=yes\n", "no"),
        (None, "not known"),
    ],
)
def test_the_switch_is_that_of_our_line(tmp_path: Path, line: str | None, switched: str) -> None:
    path = tmp_path / "plugstack.conf"
    if line is not None:
        path.write_text(line)
    assert kernel_counts.switch(f"A = b\nPlugStackConfig         = {path}\n") == switched


@pytest.mark.parametrize(
    ("answer", "asked", "state", "words"),
    [
        (said(), "yes", "ok", f"{SAYS}; bpf=yes: of jobs, too"),
        (said(), "no", "ok", f"{SAYS}; bpf=no: I/O of processes that no sample sees"),
        (said(walk=False), "yes", "ok", "slowly: before Linux 5.17"),
        (said(able=False, says="no BTF"), "yes", "warning", "no BTF; bpf=yes: I/O of processes"),
        (said(able=False, says="no BTF"), "no", "ok", "no BTF; bpf=no"),
        (said(able=False, root=False), "yes", "warning", "only root can try"),
        (None, "yes", "warning", "steelyard-bpf was not found"),
    ],
)
def test_what_is_said(answer: dict[str, Any] | None, asked: str, state: str, words: str) -> None:
    check = kernel_counts.judge(answer, asked)
    assert check.state == state
    assert words in check.found
    assert bool(check.advice) is (check.found.split("; ")[-1] != "bpf=yes: of jobs, too")


def test_the_program_itself_is_asked(tmp_path: Path) -> None:
    if not PROGRAM.exists():
        pytest.skip("no steelyard-bpf: libbpf-dev or clang was missing when it was built")
    answer = kernel_counts.status(PROGRAM)
    done = subprocess.run([PROGRAM, "status"], capture_output=True, text=True, check=False)
    assert done.stdout.startswith(answer["says"])
    assert answer["able"] is (done.returncode == 0)
    assert answer["root"] is (os.geteuid() == 0)
    silent = kernel_counts.status(tmp_path / "none")
    assert (silent["able"], "does not answer" in silent["says"]) == (False, True)
