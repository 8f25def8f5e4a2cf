"""A sampler that comes to its work when its job has begun already, or others have ended it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.system.job.conftest import state_of
from tests.system.job.test_trouble import kill_tree, ours
from tests.waiting import wait_for

from steelyard.wrappers.base.programs import find_node_program


@pytest.mark.parametrize("way", ["end", "begin and end"])
def test_a_sampler_that_comes_after_all_is_over_ends(node: Any, way: str) -> None:
    """A begin that was killed on a node too busy to start its sampler; the job has ended by then.
    There are more tags than messages that the kernel holds."""
    go, program = node.base / "go", node.base / "late"
    wait = f"until [ -e {go} ]; do sleep 0.05; done"
    program.write_text(
        f'#!/bin/sh\ncase $1 in sample) {wait};; esac\nexec {find_node_program()} "$@"\n'
    )
    program.chmod(0o755)
    tags = ":".join(f"tag=k{number}%3Dv" for number in range(20))
    words = [
        *node.begin_words("7.srv", f"--request={tags}", "--cgroup=/x"),
        f"--node-program={program}",
    ]
    begin = subprocess.Popen([find_node_program(), "job", *words], start_new_session=True)
    wait_for("it is about to start", lambda: set(ours(node.run)) - {begin.pid})
    assert begin.poll() is None, "it waits for the group to be read"
    kill_tree(begin)
    if way == "begin and end":
        node.begin("7.srv", "--request=tag=second%3Dstart")
    else:
        node.end("7.srv")
    go.touch()
    wait_for("the first one ends", lambda: len(ours(node.run)) == 2 * (way != "end"))
    if way == "begin and end":
        assert node.end("7.srv")["tags"] == {"second": "start"}
    wait_for("nothing left", lambda: node.left() == [] and not ours(node.run))
    paths = (node.records / "7.srv").glob("*.json")
    records = [json.loads(path.read_bytes()) for path in paths]
    expected = [({"second": "start"}, "processes")] if way == "begin and end" else []
    assert [(record["tags"], record["incomplete_of"]) for record in records] == expected


def test_what_a_job_does_while_its_sampler_still_starts_counts(node: Any, tmp_path: Path) -> None:
    """It was taken for older than the sampler: 8 MiB less, in a record that said complete."""
    slow = tmp_path / "slow"
    slow.write_text(f'#!/bin/sh\nsleep 0.5\nexec {find_node_program()} "$@"\n')
    slow.chmod(0o755)
    node.begin("7.srv", "--rate=20", f"--node-program={slow}")
    dd = "dd if=/dev/zero of=/dev/null bs=1M count=8 status=none"
    job = node.mom.start("7.srv", "bash", "-c", f"{dd}; kill -STOP $$")
    wait_for("it has worked", lambda: state_of(job) == "T")
    wait_for("it is seen", lambda: job in node.watched("7.srv"))
    os.kill(job, signal.SIGCONT)
    node.mom.reap(job)
    node.end("7.srv")
    assert node.record("7.srv")["io"]["wchar_bytes"] == 8 << 20
