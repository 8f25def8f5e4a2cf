"""Tags of every kind: each is stored whole, or refused at submission, with the limit and what was
found; nothing is cut without a word."""

from __future__ import annotations

import json
import subprocess

import pytest
from tests.throwaway_lab import Lab, until

MOST, KEY_MAX, VALUE_MAX = 32, 64, 256
FULL = [f"{'k' * (KEY_MAX - 2)}{n:02d}={'v' * VALUE_MAX}" for n in range(MOST)]
ODD = [
    'quote="',
    "back=a\\b\\",
    "apo='$(x)`",
    "equals=a=b==c",
    "blank= a  b ",
    "json={}[],:",
    "e==",
]


def hand_in(lab: Lab, *tags: str | bytes) -> subprocess.CompletedProcess[bytes]:
    options = [b"--tag=" + (tag if isinstance(tag, bytes) else tag.encode()) for tag in tags]
    return subprocess.run(
        ["sbatch", "--parsable", "-w", "n1", "-o", "/dev/null", *options, "--wrap", "sleep 0.3"],
        capture_output=True,
        timeout=240,
        cwd=lab.work,
        env=lab.cluster.environment(),
        check=False,
    )


def job_of(lab: Lab, *tags: str) -> str:
    done = hand_in(lab, *tags)
    assert done.returncode == 0, done.stderr
    lab.jobs.append(done.stdout.decode().strip())
    return lab.jobs[-1]


def pairs(tags: list[str]) -> dict[str, str]:
    return dict(tag.split("=", 1) for tag in tags)


def comment_of(lab: Lab, job: str) -> dict[str, object]:
    """Return the comment in sacct, which is one JSON object."""
    text = until(lambda: lab.sacct(job, "AdminComment")[0][0], f"job {job}'s comment")
    own: dict[str, object] = json.loads(text)["steelyard"]
    return own


def test_odd_values_are_stored_whole(lab: Lab) -> None:
    job = job_of(lab, *ODD)
    assert lab.records(job, 1, complete=False)[0]["tags"] == pairs(ODD)
    comment = comment_of(lab, job)
    assert comment["tags"] == pairs(ODD)
    assert "tags_left_out" not in comment
    (node,) = json.loads(lab.steelyard("show", "--json", job))["nodes"]
    assert node["tags"] == pairs(ODD)


def test_as_many_and_as_long_as_can_be(lab: Lab) -> None:
    """The record has them all; AdminComment has the number of those without space."""
    job = job_of(lab, *FULL)
    assert lab.records(job, 1, complete=False)[0]["tags"] == pairs(FULL)
    comment = comment_of(lab, job)
    told = comment["tags"]
    assert isinstance(told, dict)
    assert 5 < len(told) < MOST and told.items() <= pairs(FULL).items()
    assert comment["tags_left_out"] == MOST - len(told)


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ([*FULL, "one=more"], b"expected at most 32 tags; found one more"),
        ([f"k{n}=v" for n in range(4096)], b"expected at most 32 tags; found one more"),
        (
            ["k=" + "v" * 65536],
            b"VALUE 1 to 256 printable ASCII characters; found a VALUE of 65536",
        ),
        (["k=" + "v" * 257], b"found a VALUE of 257 bytes"),
        (["k" * 65536 + "=v"], b"found a KEY of 65536 bytes"),
        (["k=a\nb"], b"found another character in VALUE"),
        (["k=b\xc3\xa4r".encode("latin-1")], b"found another character in VALUE"),
        ([b"k=\xff\xfe"], b"found another character in VALUE"),
        ([b"\xc3\xa4=v"], b"found another character in KEY"),
        (["=v"], b"found another character in KEY"),
        (["k="], b"found no VALUE"),
        (["k"], b"found no '='"),
        ([""], b"found no '='"),
    ],
    ids=lambda value: None if isinstance(value, bytes) else f"{len(value)} tags",
)
def test_what_cannot_be_stored_is_refused_before_anything_is_queued(
    commands: Lab, tags: list[str | bytes], found: bytes
) -> None:
    done = hand_in(commands, *tags)
    assert (done.returncode, done.stdout) == (255, b"")
    (line,) = (line for line in done.stderr.splitlines() if b"steelyard: --tag=" in line)
    assert found in line
    assert len(line) < 500 and line.isascii()


def test_a_spoilt_variable_of_tags_spoils_no_job(lab: Lab) -> None:
    """It passes the tags of a job to its steps; the user may write anything into it."""
    spoilt = r"a=b\037bad\037=\037c=\303\244\037" + "k" * 70000 + "=v"
    step = f"SLURM_STEELYARD_TAGS=$(printf '{spoilt}') srun --overlap true"
    job = lab.sbatch("-w", "n1", "--tag=good=1", script=f"{step}; sleep 0.3")
    lab.wait_state(job, "COMPLETED")
    assert lab.records(job, 1, complete=False)[0]["tags"] == {"good": "1", "a": "b"}
