"""`steelyard-node netem parse` and `check`: one line of JSON, or one line why not, and its code."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
NODE = ROOT / "build" / "bin" / "steelyard-node"
KNOWN = ["--uid=1234", "--gid=77", "--partition=net", "--exclusive=yes"]


def netem(*words: str, code: int) -> str:
    """stdout of a command that ends with 0, else the one line on stderr."""
    done = subprocess.run(
        [str(NODE), "netem", *words], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == code, done.stderr
    said, silent = (done.stderr, done.stdout) if code else (done.stdout, done.stderr)
    assert not silent
    assert len(said.splitlines()) == 1
    return said.strip().removeprefix(f"steelyard-node netem {words[0]}: ")


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """A policy of our own."""
    file = tmp_path / "netem.conf"
    file.write_text(
        "enabled yes\nmax_delay 100ms\nusers 1234\ngroups 77\npartitions net\ndevices eth*\n"
        "cache yes\n",
        encoding="utf-8",
    )
    file.chmod(0o644)
    return file


def test_parse_prints_canonical_text_and_numbers() -> None:
    """Decimals read as they were written."""
    found = json.loads(netem("parse", "--", "loss=0.10%,delay=1.5ms", code=0))
    assert found == {
        "requested": "delay=1500us,loss=0.1%",
        "spec": {"delay_s": 0.0015, "loss": 0.001},
    }
    assert '"loss":0.001}' in netem("parse", "loss=0.1%", code=0)


def test_parse_complains_in_one_line() -> None:
    """The part, and what was expected."""
    assert netem("parse", "delay=50", code=2) == (
        "netem: delay=50: expected a time with unit us, ms or s, such as 50ms"
    )
    assert netem("parse", "--", "-x\x1b\n", code=2) == (
        "netem: -x\\x1b\\x0a: character '\\x1b' has no place in a specification"
    )


def test_check_allows(policy: Path) -> None:
    """The answer names the policy."""
    words = [f"--policy={policy}", *KNOWN, "--device=eth0", "--cache"]
    found = json.loads(netem("check", *words, "--", "delay=100ms", code=0))
    assert found == {
        "requested": "delay=100ms",
        "spec": {"delay_s": 0.1},
        "policy": str(policy),
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["delay=101ms"], "netem: delay 101ms: at most 100ms is allowed here (max_delay in {})"),
        (["delay=1ms", "--device=ib0"], "netem: device ib0: not among the devices of {}"),
        (["delay=1ms", "--partition=slow"], "netem: not in partition slow: {} allows other ones"),
        (["delay=1ms", "--exclusive=no"],
         ("netem: only for jobs that have their nodes for themselves (exclusive_only in {}): "
          "ask for --exclusive (Slurm), -n (Torque) or "
          "-l select=1:ncpus=1 -l place=scatter:excl (OpenPBS)")),
    ],
)  # fmt: skip
def test_check_refuses(policy: Path, words: list[str], said: str) -> None:
    """Exit code 4, by name."""
    got = netem("check", f"--policy={policy}", *KNOWN, *words, code=4)
    assert got == said.format(policy)


def test_check_asks_for_whom_it_is_told(policy: Path) -> None:
    """Groups that are given count; none given are not known, and not held against anybody."""
    words = ["check", f"--policy={policy}", "delay=1ms"]
    said = netem(*words, "--uid=9", "--gid=8", code=4)
    assert said == f"netem: user 9 is not among the users and groups of {policy}"
    assert netem(*words, "--uid=9", "--gid=8", "--gid=77", code=0)
    assert netem(*words, "--uid=9", code=0)


def test_check_without_a_policy(tmp_path: Path) -> None:
    """Which file is missing; none is always allowed."""
    missing = tmp_path / "nowhere.conf"
    assert str(missing) in netem("check", f"--policy={missing}", "delay=1ms", code=4)
    assert netem("check", f"--policy={missing}", "none", code=0)


def test_check_distrusts(policy: Path) -> None:
    """Also for root, of a file that others may write to or that is another user's."""
    policy.chmod(0o666)
    said = netem("check", f"--policy={policy}", "delay=1ms", code=4)
    assert said == f"{policy}: others than its owner may write to it: chmod go-w {policy}"
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    policy.chmod(0o644)
    os.chown(policy, 1000, -1)
    said = netem("check", f"--policy={policy}", "delay=1ms", code=4)
    assert said == f"{policy}: belongs to user 1000, expected root: chown root {policy}"


def test_wrong_usage() -> None:
    """The exit code is 2; the effect of a wrong number is reported."""
    assert netem("check", "delay=1ms", "--uid=-1", code=2) == (
        "--uid -1: expected a whole number from 0 to 4294967294"
    )
    assert netem("check", "delay=1ms", "--exclusive=perhaps", code=2) == (
        "--exclusive perhaps: expected yes or no"
    )
    done = subprocess.run(
        [str(NODE), "netem", "parse"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "expected one SPEC, found 0" in done.stderr
