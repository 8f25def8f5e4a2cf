"""One client on two nodes, in a container on each: MPI ranks and servers are inside there too."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pytest
from tests.system.jobscripts.launcher_lab import bridge_of
from tests.throwaway_lab import Lab, command_line, processes_of, until

LIMITED = "unshare,cpus=1,memory=1GiB"
STUDY = """
[study]
name = "far"
repeat = 1
[job]
nodes = 2
time_limit = "00:02:00"
[factors]
launcher = [{launchers}]
[[benchmark]]
{benchmark}
"""
# A program of MPI's as a user has it: it notes where its ranks are, and is ours then.
PROGRAM = """\
#!/bin/bash
printf '%s %s\\n' "$OMPI_COMM_WORLD_RANK" "$(readlink /proc/self/ns/pid)" >>"$0.${SY_LAUNCHER:-bare}"
exec "$STEELYARD_NPB" cg --class S
"""


def write(lab: Lab, benchmark: str, *launchers: str) -> str:
    """Write the study; return its file's name."""
    listed = ", ".join(f'"{one}"' for one in launchers)
    text = STUDY.format(launchers=listed, benchmark=benchmark)
    (lab.work / "far.toml").write_text(text, encoding="utf-8")
    return "far.toml"


def states(lab: Lab, file: str) -> dict[str, str]:
    """Submitted, ended and collected: how the run of each launcher ended."""
    lab.steelyard("submit", file)
    lab.wait_study(file)
    lab.collect(file)
    found = lab.rows(
        "far",
        "SELECT condition->>'launcher', coalesce(reason, state) FROM runs "
        "WHERE state = 'failed' OR run_id IN (SELECT run_id FROM results)",
    )
    return dict(found)


def left_over(lab: Lab) -> list[str]:
    """Processes that have the study's folder in their command line."""
    pids = (int(path.name) for path in Path("/proc").glob("[0-9]*"))
    mark = str(lab.work / "far.study")
    return [line for pid in pids if pid != os.getpid() and mark in (line := command_line(pid))]


def test_ranks_on_the_other_node_are_in_a_container_there(lab: Lab) -> None:
    folder = lab.work / "programs"
    folder.mkdir()
    (folder / "cg.S.2").write_text(PROGRAM)
    (folder / "cg.S.2").chmod(0o755)
    benchmark = f'use = "npb"\nkernel = "cg"\nclass = "S"\nranks = 2\nfolder = "{folder}"'
    found = states(lab, write(lab, benchmark, "bare", LIMITED))
    assert found == {"bare": "completed", LIMITED: "completed"}
    here = str(Path("/proc/self/ns/pid").readlink())
    for launcher, count in (("bare", 1), (LIMITED, 2)):
        lines = (folder / f"cg.S.2.{launcher}").read_text().splitlines()
        assert sorted(line.split()[0] for line in lines) == ["0", "1"]
        spaces = {line.split()[1] for line in lines}
        assert len(spaces) == count
        assert (here in spaces) == (launcher == "bare")
    until(
        lambda: not left_over(lab),
        "nothing of the study runs any more",
        seen=lambda: left_over(lab),
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="a network between containers is root's")
def test_one_program_spans_the_containers_of_both_nodes(lab: Lab) -> None:
    """There are two on each node, each with its own network namespace, on two bridges."""
    level = "unshare,network=bridge,containers=2,ranks=across"
    folder = lab.work / "across"
    folder.mkdir()
    (folder / "cg.S.4").write_text(PROGRAM)
    (folder / "cg.S.4").chmod(0o755)
    benchmark = f'use = "npb"\nkernel = "cg"\nclass = "S"\nranks = 4\nfolder = "{folder}"'
    assert states(lab, write(lab, benchmark, level)) == {level: "completed"}
    lines = (folder / f"cg.S.4.{level}").read_text().splitlines()
    assert sorted(line.split()[0] for line in lines) == ["0", "1", "2", "3"]
    assert len({line.split()[1] for line in lines}) == 4
    noted = dict(lab.rows("far", "SELECT key, value FROM tags WHERE key LIKE 'launcher_add%'"))
    addresses = noted["launcher_addresses"].split()
    assert len(set(addresses)) == 4
    bridges = {Path("/sys/class/net", bridge_of(address)) for address in addresses}
    assert len(bridges) == 2
    until(
        lambda: not left_over(lab) and not any(bridge.exists() for bridge in bridges),
        "nothing of the study runs any more, and no bridge is left",
        seen=lambda: left_over(lab),
    )


def test_a_cancelled_run_leaves_nothing_on_either_node(lab: Lab) -> None:
    file = write(lab, 'use = "iperf3"\nseconds = 100\nomit = 0', "unshare")
    lab.steelyard("submit", file)
    until(lambda: running(lab, "iperf3", "--client"), "the client measures")
    assert running(lab, "iperf3", "--server")
    lab.steelyard("cancel", file)
    until(lambda: not running(lab, "iperf3", "--client"), "the client has ended")
    until(lambda: not running(lab, "iperf3", "--server"), "the server has ended")
    until(
        lambda: not left_over(lab),
        "nothing of the study runs any more",
        seen=lambda: left_over(lab),
    )


def running(lab: Lab, *words: str) -> bool:
    """Whether a process of the test's jobs has these words in its command line."""
    for pid in processes_of(lab.work):
        line = command_line(pid).split()
        if all(word in line for word in words):
            return True
    return False


@pytest.mark.skipif(os.geteuid() != 0, reason="networks of their own and marks are root's")
def test_a_job_killed_altogether_leaves_nothing_when_it_has_ended(lab: Lab) -> None:
    """The plugin removes it at the extern step's end, and logs it."""
    level = "unshare,network=bridge,memory=64MiB"
    file = write(lab, 'use = "app"\ncommand = "sleep 97.375"', level)
    (lab.work / file).write_text((lab.work / file).read_text().replace("nodes = 2\n", ""))
    lab.steelyard("submit", file)
    until(lambda: running(lab, "sleep", "97.375"), "it measures")
    marks = [path for path in MARKS.glob("steelyard-*") if of_study(lab, path)]
    lines = [line.split(" ", 1) for path in marks for line in path.read_text().splitlines()]
    named = {word: Path(IN.get(word, "/"), value) for word, value in lines[2:]}
    assert set(named) == {"cgroup", "space", "link"}
    assert all(path.exists() for path in named.values())
    for pid in processes_of(lab.work):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until(lambda: not any(path.exists() for path in (*marks, *named.values())), "nothing is left")


MARKS = Path("/run/steelyard-containers")
IN = {"space": "/run/netns", "link": "/sys/class/net"}


def of_study(lab: Lab, mark: Path) -> bool:
    """Whether the process that wrote a mark is of the lab's jobs."""
    return int(mark.name.split("-")[1]) in processes_of(lab.work)
