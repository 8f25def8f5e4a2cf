"""A query of the job's nodes waits until the answering process has ended.

Otherwise a slow node's record lacks its usage, and reports that (of 16 records of XRootD runs on
two guests 8).
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

JOBSCRIPTS = Path(__file__).parents[3] / "jobscripts"
LINGERS_S = 0.5
# It has printed everything, and closed its output, before it ends.
SCRIPT = f"""
source "$0/lib/nodes.sh"
source "$0/xrootd/job.sh"
sy_nodes() {{ printf 'n1\\nn2\\n'; exec >&-; sleep {LINGERS_S}; }}
SY_PARAM_SERVER=other
begin=$EPOCHREALTIME
node=$(sy_xrootd_node)
printf '%s %s %s\\n' "$node" "$begin" "$EPOCHREALTIME"
"""


def test_the_shell_that_reads_nodes_does_not_end_before_the_one_that_tells_them() -> None:
    words = ["bash", "-c", SCRIPT, str(JOBSCRIPTS)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    node, begin, end = done.stdout.split()
    assert node == "n2"
    assert LINGERS_S <= float(end) - float(begin) < LINGERS_S + 20


@pytest.mark.parametrize("path", sorted(JOBSCRIPTS.rglob("*.sh")), ids=lambda path: path.name)
def test_no_script_reads_nodes_out_of_a_process_of_its_own(path: Path) -> None:
    assert not re.search(r"< <\(sy_(nodes|places)\b", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("says", "count"), [("", 0), ("one", 1), ("one\ntwo", 2), ("a\n\nb", 3)])
def test_who_tells_nothing_tells_no_line(says: str, count: int) -> None:
    """An empty line would be a node without a name."""
    script = 'source "$0/lib/nodes.sh"; sy_lines found printf %s "$1"; echo "${#found[@]}"'
    words = ["bash", "-euc", script, str(JOBSCRIPTS), says]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) == count
