"""A sampler that comes to its work when its job has begun already, or others have ended it."""

from __future__ import annotations

import json
import re
import subprocess
import time
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
        *node.begin_arguments("7.srv", f"--request={tags}", "--cgroup=/x"),
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
    """It was assumed to be earlier than the sampler: 8 MiB less, in a record that was complete."""
    slow = tmp_path / "slow"
    slow.write_text(f'#!/bin/sh\nsleep 0.5\nexec {find_node_program()} "$@"\n')
    slow.chmod(0o755)
    node.begin("7.srv", "--rate=20", f"--node-program={slow}")
    dd = "dd if=/dev/zero of=/dev/null bs=1M count=8 status=none"
    job = node.mom.start("7.srv", "bash", "-c", f"{dd}; kill -STOP $$")
    wait_for("it has worked", lambda: state_of(job) == "T")
    wait_for("it is seen", lambda: job in node.watched("7.srv"))
    node.finish_seen("7.srv", job)
    node.mom.reap(job)
    node.end("7.srv")
    record = node.record("7.srv")
    if record["incomplete_of"] == "job":  # a busy machine: that is the next test's
        assert "after its launch" in record["incomplete_reason"]
        pytest.skip(record["incomplete_reason"])
    assert record["io"]["wchar_bytes"] == 8 << 20


def test_elapsed_time_of_a_late_sampler_begins_at_its_launch(node: Any, tmp_path: Path) -> None:
    """On a busy node the first sample came 2 s late: elapsed_s was 2 s too short.

    The record was complete nevertheless.
    """
    slow = node.other_program("slow", '[ "$1" = sample ] && sleep 1.2; exec $program "$@"')
    before_s = time.monotonic()
    node.begin("7.srv", f"--node-program={slow}")
    begun_s = time.monotonic()
    node.run_seen("7.srv", "true")
    ends_s = time.monotonic()
    node.end("7.srv")
    record = node.record("7.srv")
    assert ends_s - begun_s <= record["elapsed_s"] <= time.monotonic() - before_s
    assert (record["complete"], record["incomplete_of"]) == (False, "job")
    assert re.match(
        r"the sampler took its first sample \d+\.\d s after its launch: elapsed_s begins at",
        record["incomplete_reason"],
    )
    measured_s = record["end_unix_s"] - record["start_unix_s"]
    assert record["elapsed_s"] - measured_s > 1.0, "start_unix_s is the first sample's"
