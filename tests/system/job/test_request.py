"""A user's request as one text; refused with the messages that sbatch's users get."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from steelyard.wrappers.base.programs import find_node_program


def job(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [find_node_program(), "job", *words], capture_output=True, text=True, check=False
    )


def test_every_wish_in_one_word() -> None:
    done = job(
        "encode", "--netem=delay=50ms,loss=1%", "--tag=a=b c", "--tag=k=:;%/", "--sample-rate=10",
        "--cache=cold",
    )  # fmt: skip
    assert done.stdout == (
        "netem=delay%3D50ms%2Closs%3D1%25:tag=a%3Db%20c:tag=k%3D%3A%3B%25%2F:sample-rate=10"
        ":cache=cold\n"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert job("check", f"--request={done.stdout.strip()}").returncode == 0


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("--netem=delay=50m", "--netem=delay=50m: "),
        ("--netem=dealy=50ms", "--netem=dealy=50ms: "),
        ("--tag=1=b", "--tag=1=b: expected KEY=VALUE, KEY a letter"),
        ("--cache=hot", "--cache=hot: expected cold, warm or cold:cvmfs=MB"),
        ("--cache=cold:cvmfs=0", "--cache=cold:cvmfs=0: "),
        ("--cache=cold:cvmfs=300MB", "--cache=cold:cvmfs=300MB: "),
        ("--cache=warm:cvmfs=300", "--cache=warm:cvmfs=300: expected cold, warm"),
        ("--sample-rate=x", "--sample-rate=x: "),
    ],
)
def test_a_wrong_wish_is_refused(word: str, said: str) -> None:
    for verb in ("check", "encode"):
        done = job(verb, word)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"steelyard: {said}")
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "request_",
    [
        "netem", "delay=50ms", "netem=delay=50ms", "tag=a%3Db:", ":tag=a%3Db", "tag=a%3", "tag=%00",
        "tag=%zz", "tag=a b", "tag=a%3Db::cache=cold", "x" * 20000,
    ],
)  # fmt: skip
def test_what_is_no_request_is_refused(request_: str) -> None:
    done = job("check", f"--request={request_}")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("steelyard")


def test_a_line_break_does_not_reach_a_log() -> None:
    done = job("check", "--request=tag=a%0Ab")
    assert done.returncode == 2
    assert done.stderr.startswith("steelyard: --tag=a?b: ")
    assert done.stderr.count("\n") == 1


def test_the_policy_says_no_before_anything_is_queued(tmp_path: Path) -> None:
    policy = tmp_path / "netem.conf"
    policy.write_text("enabled no\n")
    policy.chmod(0o644)
    done = job("check", "--netem=delay=5ms", f"--netem-policy={policy}", "--uid=1000")
    assert done.returncode == 2
    assert done.stderr.startswith("steelyard: --netem=delay=5ms: ")
    assert job("check", "--netem=none", f"--netem-policy={policy}").returncode == 0
    absent = tmp_path / "absent.conf"
    assert job("check", "--netem=delay=5ms", f"--netem-policy={absent}").returncode == 0


def test_the_configurations_limit_of_rates(tmp_path: Path) -> None:
    config = tmp_path / "pbs.conf"
    config.write_text("# ours\n max_rate = 20 # \nrate=1\n".replace(" # \n", "\n"))
    config.chmod(0o644)
    assert job("check", "--sample-rate=20", f"--config={config}").returncode == 0
    done = job("check", "--sample-rate=21", f"--config={config}")
    assert done.returncode == 2
    assert done.stderr.startswith("steelyard: --sample-rate=21: ")
