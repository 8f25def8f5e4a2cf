"""`steelyard check`: what it prints, and that it writes nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.wrappers.commands import cli
from steelyard.wrappers.netem import kernel_support
from steelyard.wrappers.schedulers.slurm import partitions
from steelyard.wrappers.study import study
from steelyard.wrappers.submit import study_preview

Write = Callable[..., Path]
Capture = pytest.CaptureFixture[str]

NODES = [
    f"NodeName=n{i} CPUTot=8 ThreadsPerCore=2 State={state} Partitions=main CurrentWatts={watts}"
    for i, state, watts in ((1, "IDLE", 100), (2, "IDLE", 300), (3, "ALLOCATED", 0))
]
PARTITION = "PartitionName=main Default=YES MaxNodes={nodes} MaxTime={time} State={state}"
HOUR = ("[factors]", '[job]\ntime_limit = "01:00:00"\n[factors]')


def cluster(
    slurm: Any, nodes: str = "UNLIMITED", time: str = "UNLIMITED", state: str = "UP"
) -> None:
    slurm.change(node=NODES, partition=[PARTITION.format(nodes=nodes, time=time, state=state)])


def told(path: Path, capsys: Capture, *words: str, code: int = 0) -> dict[str, Any]:
    assert cli.main(["check", str(path), "--json", *words]) == code
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_it_tells_all_and_writes_nothing(slurm: Any, write_study: Write, capsys: Capture) -> None:
    cluster(slurm)
    path = write_study(HOUR)
    before = sorted(path.parent.iterdir())
    found = told(path, capsys)
    # Two variants with two main figures (no earlier run says which one they have), of each four runs with one client and four with two, on nodes of four cores.
    assert (found["runs"], found["to_submit"], found["comparisons"]) == (16, 16, 4)
    assert found["cost"]["core_hours_at_most"] == 2 * (4 * 1 + 4 * 2) * 4
    assert (found["cost"]["idle_nodes"], found["cost"]["known_nodes"]) == (2, 3)
    assert found["problems"] == []
    assert cli.main(["check", str(path)]) == 0
    out = capsys.readouterr().out
    for words in (
        "study       small, on slurm: 2 variants, 2 conditions",
        "runs        4 of each variant and condition, in 2 blocks: 16 of 16 are to be submitted",
        "core-hours  not known",
        "at most     96 core-hours are possible by the time limit",
        "not known   of 16 runs there is no earlier run of the same benchmark: submit a small",
        "any benchmark   1 %      a guess",
        "no problem was found",
    ):
        assert words in out
    assert sorted(path.parent.iterdir()) == before
    assert not slurm.jobs


@pytest.mark.parametrize(
    ("partition", "words", "sure"),
    [
        (
            {"nodes": "1"},
            "clients: 2: 2 nodes are asked for, and partition main allows a job 1",
            True,
        ),
        ({"time": "00:30:00"}, 'time_limit = "01:00:00": partition main allows 30 minutes', True),
        ({"state": "DOWN"}, "partition main is not up: jobs will wait", False),
    ],
)
def test_what_the_partition_does_not_allow(
    slurm: Any,
    write_study: Write,
    capsys: Capture,
    partition: dict[str, str],
    words: str,
    sure: bool,
) -> None:
    cluster(slurm, **partition)
    found = told(write_study(HOUR), capsys, code=3 if sure else 0)
    (problem,) = found["problems"]
    assert problem["text"].endswith(words)
    assert problem["sure"] is sure


def test_new_conditions_are_told_by_the_command_that_runs(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    cluster(slurm)
    text = '[study]\nrepeat = 1\n[factors]\nclients = {}\n[[benchmark]]\nuse = "filesystem"\n'
    path = write_study(text=text.format("[1]"))
    assert cli.main(["submit", str(path)]) == 0
    write_study(text=text.format("[1, 2]"))
    capsys.readouterr()
    cli.main(["check", str(path)])
    words = "1 condition is new: to be run in blocks of their own, not interleaved with"
    assert f"steelyard check: {words}" in capsys.readouterr().err
    cli.main(["submit", str(path)])
    assert f"steelyard submit: {words}" in capsys.readouterr().err


def test_a_budget_is_kept_by_submit_and_told_by_check(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    cluster(slurm)
    path = write_study(HOUR, ("seed = 7", "seed = 7\nmax_core_hours = 95"))
    words = (
        f"{path}: study.max_core_hours = 95: 96 core-hours are possible by [job] time_limit: fewer "
        "repeats or levels, a shorter time_limit, or a larger limit"
    )
    assert told(path, capsys, code=3)["problems"] == [{"text": words, "sure": True}]
    assert cli.main(["submit", str(path)]) == 2
    assert capsys.readouterr().err == f"steelyard submit: {words}\n"
    assert not slurm.jobs
    path = write_study(HOUR, ("seed = 7", "seed = 7\nmax_core_hours = 96"))
    assert cli.main(["submit", str(path)]) == 0
    assert slurm.jobs


def test_kinds_of_jobs_that_nobody_was_asked_about_are_told(
    slurm: Any, write_study: Write, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each level of `network` is one."""
    monkeypatch.setattr(
        kernel_support, "list_required_modules", lambda _: ()
    )  # this machine's kernel is not queried
    for count, told in ((40, False), (43, True)):
        levels = ", ".join(f'"delay={n}ms"' for n in range(count))
        path = write_study(
            text=f'[factors]\nnetwork = [{levels}]\n[[benchmark]]\nuse = "filesystem"\n'
        )
        cli.main(["check", str(path)])
        words = (
            "warning: slurm was asked about 40 of the study's 43 kinds of jobs (options and numbers "
            "of nodes), those for different nodes first: nothing is known of the other 3\n"
        )
        assert (words in capsys.readouterr().out) is told
    assert not slurm.jobs


@pytest.mark.parametrize("watts", ["0", "-3", "inf", "nan"])
def test_a_power_that_is_none(write_study: Write, capsys: Capture, watts: str) -> None:
    assert cli.main(["check", str(write_study()), f"--node-power={watts}"]) == 2
    assert "allowed is watts above 0" in capsys.readouterr().err


def test_a_power_in_use_is_that_of_the_nodes_that_tell_it(slurm: Any) -> None:
    from steelyard.wrappers.schedulers.available_nodes import AvailableNodes
    from steelyard.wrappers.schedulers.slurm import partitions

    rows = [dict(partitions.WORD.findall(line)) for line in NODES]
    found = AvailableNodes("x", tuple(partitions.parse_nodes(rows)))
    assert (found.watts, found.cores, found.idle_nodes) == (200.0, 4, 2)
    assert slurm


def test_a_failure_of_an_earlier_submit_is_told_apart() -> None:
    from steelyard.wrappers.submit.submit import Outcome, format_outcome

    done = Outcome("s", "/s.study", "local", 12, 8, ["b001"], [], 3, 1, 2.0)
    assert format_outcome(done) == (
        "8 of 12 runs executed here (2 failed, 1 failed before, 2.0 s): /s.study"
    )


def test_too_few_nodes_are_sure_only_where_no_job_can_have_more(write_study: Write) -> None:
    from steelyard.wrappers.schedulers.available_nodes import AvailableNodes, Node
    from steelyard.wrappers.schedulers.base import Batch
    from steelyard.wrappers.study import plan, study
    from steelyard.wrappers.submit import scheduler_checks

    found = study.load_study(write_study())
    run = next(run for run in plan.make_plan(found) if run.clients == 2)
    batch = Batch("b001-1", "small", Path("/s"), 1, 2, (), (), (run.run_id,), found.job)
    for is_all in (True, False):
        place = AvailableNodes("the cluster", (Node("n1"),), is_all=is_all)
        (problem,) = scheduler_checks.check_nodes(found, run, batch, place)
        assert problem.sure is is_all


def test_without_a_cluster_it_promises_nothing(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    """Seen: "no problem was found: `steelyard submit` submits it", which then refused."""
    slurm.fail("scontrol", "Could not establish a configuration source")
    assert cli.main(["check", str(write_study(HOUR)), "--scheduler", "slurm"]) == 0
    told = capsys.readouterr()
    assert "no Slurm cluster answers" in told.err
    assert told.out.endswith(
        "nothing found against it here, where no cluster answers: check it where it does, too\n"
    )
    assert "None" not in told.out


def test_where_all_runs_are_submitted_it_says_so(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    cluster(slurm)
    path = write_study(HOUR)
    assert cli.main(["submit", str(path)]) == 0
    capsys.readouterr()
    assert cli.main(["check", str(path)]) == 0
    words = "nothing is to be submitted: all runs are done, waiting, running or failed\n"
    assert capsys.readouterr().out.endswith(words)
    slurm.fail("scontrol", "Could not establish a configuration source")
    cli.main(["check", str(path)])
    assert "None" not in capsys.readouterr().out


NODE_STUDY = """\
[study]
repeat = 1
[factors]
node = {nodes}
[[benchmark]]
use = "app"
command = "/bin/true"
"""


def test_a_node_that_the_cluster_does_not_have_is_named(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    cluster(slurm)
    path = write_study(text=NODE_STUDY.format(nodes='["n1", "n99"]'))
    texts = [one["text"] for one in told(path, capsys, code=3)["problems"] if one["sure"]]
    assert (
        f'{path}: factors.node: "n99": partition main has no such node that fits (it has n1, n2, n3)'
        in texts
    )


def test_each_node_has_its_own_jobs_and_no_baseline(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    cluster(slurm)
    path = write_study(text=NODE_STUDY.format(nodes='["n1", "n2"]'))
    assert study.load_study(path).baseline == {}
    assert cli.main(["submit", str(path), "--dry-run", "--json"]) == 0
    scripts = json.loads(capsys.readouterr().out)["scripts"].values()
    found = sorted(line for one in scripts for line in one.splitlines() if "nodelist" in line)
    assert found == ["#SBATCH --nodelist=n1", "#SBATCH --nodelist=n2"]
    named = write_study(text=NODE_STUDY.format(nodes='["n1", "n2"]') + '[baseline]\nnode = "n2"\n')
    assert study.load_study(named).baseline == {"node": "n2"}


def test_another_node_is_refused_without_a_scheduler(write_study: Write, capsys: Capture) -> None:
    path = write_study(text=NODE_STUDY.format(nodes='["elsewhere"]'))
    assert cli.main(["submit", str(path), "--scheduler", "local"]) == 3
    words = 'factors.node: "elsewhere": without a scheduler all runs are on this machine'
    assert words in capsys.readouterr().err


def with_states(*states: str) -> list[str]:
    """Return nodes n1, n2, and so on."""
    return [
        f"NodeName=n{i} CPUTot=8 ThreadsPerCore=2 State={state} Partitions=main"
        for i, state in enumerate(states, 1)
    ]


def nodelists(slurm: Any) -> list[str]:
    """Return the nodelists of the submitted jobs."""
    lines = (line for job in slurm.jobs.values() for line in job["script"].splitlines())
    return sorted(line.rpartition("=")[2] for line in lines if "--nodelist" in line)


def test_each_node_that_is_up_is_drawn_once(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    cluster(slurm)
    slurm.change(node=with_states("IDLE", "DOWN*", "ALLOCATED"))
    path = write_study(text=NODE_STUDY.format(nodes='"each"'))
    found = told(path, capsys)
    assert (found["runs"], found["problems"]) == (2, [])
    folder = study.derive_folder(path)
    assert not folder.exists()
    assert cli.main(["submit", str(path)]) == 0
    words = '"each": 2 nodes of partition main: n1, n3; not up and left out: n2'
    assert words in capsys.readouterr().err
    plan = json.loads((folder / "plan.json").read_text())["study"]
    assert plan["factors"]["node"] == ["n1", "n3"]
    assert plan["drawn"]["node"] == {"nodes": "each", "of": 3, "levels": ["n1", "n3"]}

    slurm.change(node=with_states("DOWN", "IDLE", "IDLE", "IDLE"))
    assert told(path, capsys)["to_submit"] == 0
    assert cli.main(["submit", str(path)]) == 0
    out = capsys.readouterr()
    assert "nothing to add: all 2 runs" in out.out
    assert "keeps the 2 nodes of its first submit; partition main also has n2, n4" in out.err
    write_study(text=NODE_STUDY.format(nodes='["n1", "n3", "n4"]'))
    assert cli.main(["submit", str(path)]) == 0  # a list with them grows the same study
    assert "1 of 3 runs" in capsys.readouterr().out


def test_which_nodes_are_up_and_idle() -> None:
    states = (
        "IDLE",
        "IDLE+CLOUD+POWERED_DOWN",
        "IDLE+POWERING_DOWN",
        "DOWN*",
        "IDLE+DRAIN",
        "MIXED",
    )
    rows = [dict(partitions.WORD.findall(line)) for line in with_states(*states)]
    found = [(node.up, node.idle) for node in partitions.parse_nodes(rows)]
    no, both = (False, False), (True, True)
    assert found == [both, (True, False), no, no, no, (True, False)]


def test_a_new_session_has_the_nodes_that_are_up_then(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    cluster(slurm)
    path = write_study(text=NODE_STUDY.format(nodes='"each"'))
    assert cli.main(["submit", str(path), "--session", "a"]) == 0
    slurm.change(node=with_states("IDLE", "DOWN", "IDLE"))
    assert cli.main(["submit", str(path), "--session", "b"]) == 0
    assert "gone: app (node=n2)" in capsys.readouterr().err


def test_no_node_that_is_up_is_an_error(slurm: Any, write_study: Write, capsys: Capture) -> None:
    cluster(slurm)
    slurm.change(node=with_states("DOWN", "DRAINED"))
    path = write_study(text=NODE_STUDY.format(nodes='"each"'))
    for command in ("check", "submit"):
        assert cli.main([command, str(path)]) == 3
        words = 'factors.node = "each": none of the 2 nodes of partition main is up: name the nodes'
        assert words in capsys.readouterr().err
    slurm.fail("scontrol", "Could not establish a configuration source")
    assert cli.main(["check", str(path), "--scheduler", "slurm"]) == 3
    assert "no nodes of the cluster that fit are known here" in capsys.readouterr().err
    path = write_study(text=NODE_STUDY.format(nodes='"all"'))
    assert cli.main(["check", str(path)]) == 2
    assert 'factors.node = "all": allowed is a list of nodes' in capsys.readouterr().err


def test_each_node_without_a_scheduler_is_this_host(write_study: Write, capsys: Capture) -> None:
    text = NODE_STUDY.format(nodes='"each"') + '[baseline]\nnode = "elsewhere"\n'
    assert cli.main(["check", str(write_study(text=text)), "--scheduler", "local"]) == 2
    here = os.uname().nodename
    assert f'one of the factor\'s levels: "{here}"' in capsys.readouterr().err
    path = write_study(text=NODE_STUDY.format(nodes='"each"'))
    assert told(path, capsys, "--scheduler", "local")["problems"] == []


def test_types_of_node_on_this_machine_alone_are_told_before_they_run(
    write_study: Write, capsys: Capture
) -> None:
    text = '[study]\nrepeat = 1\n[factors]\nnode_type = ["physical", "virtual"]\n[[benchmark]]\n'
    path = write_study(text=f'{text}use = "app"\ncommand = "/bin/true"\n')
    words = "node_type = physical, virtual: without a scheduler all runs are on this machine"
    (problem,) = told(path, capsys, "--scheduler", "local")["problems"]
    assert problem["text"].startswith(words) and not problem["sure"]
    assert cli.main(["submit", str(path), "--scheduler", "local", "--dry-run"]) == 0
    assert f"warning: {words}" in capsys.readouterr().err


def test_a_study_over_nodes_is_told_scale_by_scale(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    cluster(slurm)
    text = """\
[study]
repeat = 2
blocks = 1
[job]
time_limit = "01:00:00"
[factors]
nodes = [1, 3, 9]
[[benchmark]]
use = "npb"
kernel = "ep"
folder = "/nasa"
"""
    path = write_study(text=text)
    assert cli.main(["check", str(path)]) == 3
    out = capsys.readouterr().out
    for words in (
        "            nodes=1: 2 runs, at most 8 core-hours\n",
        "            nodes=3: 2 runs, at most 24 core-hours\n",
        "            nodes=9: 2 runs, at most 72 core-hours\n",
        "nodes       partition main: 3 nodes of up to 4 cores, 2 idle now",
        f"missing: {path}: factors.nodes: 9: 9 nodes are asked for, and partition main has 3 that fit",
    ):
        assert words in out
    assert cli.main(["submit", str(path)]) == 3
    assert not slurm.jobs


@pytest.mark.parametrize(("use", "is_told"), [("stream", True), ("npb", False), ("iperf3", False)])
def test_what_stays_on_one_node_is_told(use: str, is_told: bool, write_study: Write) -> None:
    path = write_study(text=f'[factors]\nnodes = [2, 4]\n[[benchmark]]\nuse = "{use}"\n')
    notes = list(study_preview.list_notes(study.load_study(path)))
    words = "the factor nodes: stream runs on the first node of its job"
    assert [note.startswith(words) for note in notes] == ([True] if is_told else [])
