"""Whoever asks for the job's nodes waits until the one that tells them has ended: else a slow node's
record lacks what that used, and says so (of 16 records of XRootD runs on two guests 8)."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

JOBSCRIPTS = Path(__file__).parents[3] / "jobscripts"
LINGERS_S = 0.5
# It has said all, and closed its output, before it ends.
SCRIPT = f"""
sy_nodes() {{ printf 'n1\\nn2\\n'; exec >&-; sleep {LINGERS_S}; }}
source "$0"
SY_PARAM_SERVER=other
begin=$EPOCHREALTIME
node=$(sy_xrootd_node)
printf '%s %s %s\\n' "$node" "$begin" "$EPOCHREALTIME"
"""


def test_the_shell_that_reads_nodes_does_not_end_before_the_one_that_tells_them() -> None:
    words = ["bash", "-c", SCRIPT, str(JOBSCRIPTS / "xrootd/job.sh")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    node, begin, end = done.stdout.split()
    assert node == "n2"
    assert LINGERS_S <= float(end) - float(begin) < LINGERS_S + 20


@pytest.mark.parametrize("path", sorted(JOBSCRIPTS.rglob("*.sh")), ids=lambda path: path.name)
def test_no_script_reads_nodes_out_of_a_process_of_its_own(path: Path) -> None:
    assert not re.search(r"< <\(sy_(nodes|places)\b", path.read_text(encoding="utf-8"))
