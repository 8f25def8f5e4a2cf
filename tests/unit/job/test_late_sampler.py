"""A sampler that comes to its work when others have ended its job."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from tests.unit.job.conftest import wait_for
from tests.unit.job.test_trouble import kill_tree, ours

from steelyard.wrappers.base.node import find_node_program


@pytest.mark.slow
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
    expected = [({"second": "start"}, True)] if way == "begin and end" else []
    assert [(record["tags"], record["complete"]) for record in records] == expected
