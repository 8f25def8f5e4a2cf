"""Prologue and epilogue of Torque, given what a real pbs_mom gave them."""

from __future__ import annotations

import csv
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.system.job.conftest import is_there, state_of
from tests.system.torque.conftest import JOB_IDS, NOBODY, Cluster, Node, Recorded
from tests.waiting import wait_for

JOB, SINGLE = JOB_IDS["203.vm"], JOB_IDS["0.vm"]


def first_given(cluster: Cluster, script: str, **changed: str) -> Recorded:
    """The first node's of the two-node job: its sister's, whose number and file of nodes differ."""
    given = cluster.given(f"torque.{script}.parallel.203.vm", **changed)
    given.environment |= {"PBS_NODENUM": "0", "PBS_NODEFILE": str(cluster.base / "nodefile")}
    return given


def marks(job: str, number: int) -> dict[str, str]:
    return {"PBS_JOBID": job, "PBS_NODENUM": str(number), "PATH": "/usr/bin:/bin"}


def launch(cluster: Cluster, given: Recorded, script: str, **more: Any) -> Any:
    return cluster.first.pelog(
        "prologue", given, job=["sh", "-c", script], uid=NOBODY,
        marks=marks(given.words[0], 0), **more,
    )  # fmt: skip


def test_two_nodes_in_the_order_of_torque(cluster: Cluster) -> None:
    sister = cluster.given("torque.prologue.parallel.203.vm")
    assert cluster.sister.pelog("prologue.parallel", sister) == 0
    status, pid = launch(cluster, first_given(cluster, "prologue"), "kill -STOP $$; exit 3")
    assert status == 0
    wait_for("it has stopped itself", lambda: state_of(pid) == "T")
    wait_for("a sample has it", lambda: any(processes_sampled(cluster)))
    os.kill(pid, signal.SIGCONT)
    wait_for("its end", lambda: not is_there(pid))
    time.sleep(0.3)  # as pbs_mom, which looks at its children now and then
    assert cluster.first.order(reap=pid) == 3 << 8
    done = cluster.given("torque.epilogue.parallel.203.vm")
    assert cluster.sister.pelog("epilogue.parallel", done) == 0
    done = first_given(cluster, "epilogue")
    done.words[9] = "3"
    assert cluster.first.pelog("epilogue", done) == 0
    first, second = (cluster.record_of(JOB, name) for name in ("vm", "vmb"))
    for record in (first, second):
        assert record["incomplete_of"] == "processes", record["incomplete_reason"]
    assert int(first["job"]["nodes"]) == 2
    assert first["job"]["exit_status"] == "3"
    assert second["job"].get("exit_status") is None, "a sister is told 0 whatever it was"
    assert first["processes"]["max_processes"] >= 1
    assert second["job"]["name"] == "twonode"
    assert (cluster.left(), cluster.samplers()) == ([], [])
    assert not cluster.first.output.read_bytes(), "that is the job's own output"


def processes_sampled(cluster: Cluster) -> list[int]:
    """How many processes each sample of the first node has, so far."""
    texts = (path.read_text(encoding="ascii") for path in cluster.records.rglob("vm.*.csv"))
    rows = (row for text in texts for row in csv.DictReader(text.splitlines()))
    return [int(row["processes"]) for row in rows if row["processes"]]


STRANGE = [
    'a"b', "a'b", "a\nb", "$(touch {marker})", "`touch {marker}`", ";touch {marker};", "-n", "",
    "x" * 4096, "ä\u2028ö", "*", "%s%n",
]  # fmt: skip


@pytest.mark.parametrize("name", STRANGE)
def test_a_name_is_nothing_but_a_name(cluster: Cluster, tmp_path: Path, name: str) -> None:
    marker = tmp_path / "marker"
    name = name.replace("{marker}", str(marker))
    given = cluster.given("torque.prologue.0.vm", name=name)
    assert cluster.first.pelog("prologue", given) == 0
    assert cluster.first.pelog("epilogue", cluster.given("torque.epilogue.0.vm", name=name)) == 0
    assert not marker.exists()
    assert cluster.record_of(SINGLE, "vm")["incomplete_of"] == "processes"
    assert cluster.left() == []


@pytest.mark.parametrize("job", ["7[4].srv.example.org", "7[].srv", "../7", "", "-x", "7 8"])
def test_any_job_id(cluster: Cluster, job: str) -> None:
    given = cluster.given("torque.prologue.0.vm")
    given.words[0] = job
    assert cluster.first.pelog("prologue", given) == 0
    if job.startswith("7["):
        wait_for("the record", (cluster.records / job).is_dir)
    given = cluster.given("torque.epilogue.0.vm")
    given.words[0] = job
    assert cluster.first.pelog("epilogue", given) == 0
    assert (cluster.left(), cluster.samplers()) == ([], [])


def test_a_task_of_an_array_knows_whose_it_is(cluster: Cluster) -> None:
    cluster.first.pelog("prologue", cluster.given("torque.prologue.0.vm", "7[4].srv.org"))
    cluster.first.pelog("epilogue", cluster.given("torque.epilogue.0.vm", "7[4].srv.org"))
    job = cluster.record_of("7[4].srv.org", "vm")["job"]
    assert (job["array_job_id"], job["array_task_id"]) == ("7[].srv.org", "4")


@pytest.mark.parametrize("script", ["prologue", "epilogue", "prologue.parallel", "epilogue.parallel", "epilogue.precancel"])  # fmt: skip
def test_without_any_argument(cluster: Cluster, script: str) -> None:
    assert cluster.first.pelog(script, Recorded([], {"PATH": "/bin:/usr/bin"})) == 0


def test_an_epilogue_whose_prologue_never_ran(cluster: Cluster) -> None:
    for _ in range(2):
        given = cluster.given("torque.epilogue.1.vm")  # of a job that failed in its prologue
        assert cluster.first.pelog("epilogue", given) == 0
    assert not (cluster.records / "1.vm").exists()
    assert cluster.left() == []


def test_a_prologue_twice_is_one_record(cluster: Cluster) -> None:
    for _ in range(2):
        assert cluster.first.pelog("prologue", cluster.given("torque.prologue.0.vm")) == 0
    assert cluster.first.pelog("epilogue", cluster.given("torque.epilogue.0.vm")) == 0
    assert cluster.record_of(SINGLE, "vm")["incomplete_of"] == "processes"


GROUPS = Path(__file__).parents[2] / "data/torque/cgroups"


def put_groups(tree: Path, moment: str, job: str, *hierarchies: str) -> None:
    """What lay in a sister's hierarchies when its prologue and when its epilogue began."""
    for name in hierarchies:
        (source,) = (GROUPS / moment / "sys/fs/cgroup" / name / "torque").iterdir()
        target = tree / "sys/fs/cgroup" / name / "torque" / job
        shutil.copytree(source, target, dirs_exist_ok=True)


def sisters_record(cluster: Cluster, tree: Path, job: str, *hierarchies: str) -> dict[str, Any]:
    cluster.turn_on(f"root={tree}")
    put_groups(tree, "begin", job, *hierarchies)
    prologue = cluster.given("torque.prologue.parallel.203.vm", job)
    assert cluster.sister.pelog("prologue.parallel", prologue) == 0
    put_groups(tree, "end", job, *hierarchies)
    epilogue = cluster.given("torque.epilogue.parallel.203.vm", job)
    assert cluster.sister.pelog("epilogue.parallel", epilogue) == 0
    return cluster.record_of(job, "vmb")


@pytest.mark.parametrize("job", ["10.tqsrv", "11[7].tqsrv.example.org"])
def test_the_jobs_cgroup_counts_what_no_sample_saw(
    cluster: Cluster, tmp_path: Path, job: str
) -> None:
    record = sisters_record(cluster, tmp_path / "tree", job, "cpuacct", "memory", "cpuset")
    assert "that no step reported" in record["incomplete_reason"], "the recorded ones"
    counted_ns = (GROUPS / "end/sys/fs/cgroup/cpuacct/torque/11[7].tqsrv/cpuacct.usage").read_text()
    assert record["cpu"]["source"] == "cgroup1"
    assert record["cpu"]["cpu_s"] == int(counted_ns) // 1000 / 1e6


def test_the_first_nodes_prologue_leaves_the_cgroup(cluster: Cluster, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    cluster.turn_on(f"root={tree}")
    put_groups(tree, "begin", JOB, "cpuacct", "memory", "cpuset")
    given = cluster.given("torque.prologue.0.vm", JOB)
    assert cluster.first.pelog("prologue", given) == 0
    left = [tree / "sys/fs/cgroup" / name / "cgroup.procs" for name in ("cpuacct", "memory")]
    assert all(path.read_text().strip().isdigit() for path in left)


@pytest.mark.parametrize("place", ["sys/fs/cgroup/cpuset", "dev/cpuset"])
def test_a_cpuset_alone_tells_whose_a_process_is(
    cluster: Cluster, tmp_path: Path, place: str
) -> None:
    tree = tmp_path / "tree"
    (tree / place / f"torque/{JOB}").mkdir(parents=True)
    record = sisters_record(cluster, tree, JOB)
    assert record["processes"]["named"], "by its cpuset: no task has come yet"
    assert record["cpu"]["source"] == "processes"


def test_another_jobs_cgroup_is_not_this_ones(cluster: Cluster, tmp_path: Path) -> None:
    put_groups(tmp_path / "tree", "begin", "20.vm", "cpuacct", "memory")
    record = sisters_record(cluster, tmp_path / "tree", JOB)
    assert not record["processes"]["named"]


ASKED = "nodes=vm+vmb,other=steelyard:netem=delay%3D50ms,walltime=00:01:00"


def test_a_refused_condition_is_exit_code_1_and_one_line(cluster: Cluster) -> None:
    given = cluster.given("torque.prologue.0.vm", resources=ASKED)
    assert cluster.first.pelog("prologue", given) == 1
    said = cluster.first.output.read_text()
    assert said.startswith("steelyard: --netem=delay=50ms: ") and said.count("\n") == 1
    assert cluster.first.pelog("epilogue", cluster.given("torque.epilogue.0.vm")) == 0
    assert (cluster.left(), cluster.samplers()) == ([], [])


@pytest.mark.parametrize("alone", ["True", "False"])
def test_a_first_node_without_the_moms_file_asks_the_server_who_is_alone(
    cluster: Cluster, alone: str
) -> None:
    qstat = cluster.base / "bin/qstat"
    qstat.parent.mkdir()
    qstat.write_text(f'#!/bin/sh\necho "Job Id: $2"; echo "    node_exclusive = {alone}"\n')
    qstat.chmod(0o755)
    given = first_given(cluster, "prologue", resources=ASKED)
    launch(cluster, given, "exit 0")
    cluster.first.pelog("epilogue", first_given(cluster, "epilogue"))
    assert cluster.record_of(JOB, "vm")["job"]["exclusive"] is (True if alone == "True" else None)


@pytest.mark.parametrize(
    "alarm", ["$prologalarm 14", "$prologalarm 014 # seconds", "\t$prologalarm  14\r", "$prologalarm 300\n$prologalarm 14"]
)  # fmt: skip
def test_it_ends_before_the_alarm_that_would_try_the_job_again_for_ever(cluster: Cluster, alarm: str) -> None:  # fmt: skip
    """pbs_mom's alarm is at 14 s minus 10; another value in the line ends no job."""
    (cluster.first.mom_priv / "config").write_text(f"$pbsserver vm\n{alarm}\n")
    program = cluster.base / "libexec/steelyard/steelyard-node"
    program.unlink()
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    given = cluster.given("torque.prologue.0.vm", resources=ASKED)
    assert cluster.first.pelog("prologue", given) == 1
    assert "it took more than 1 s" in cluster.first.output.read_text()


def test_blanks_around_a_key_are_no_part_of_its_value(cluster: Cluster) -> None:
    """steelyard-node reads the same file in the same way."""
    text = cluster.config.read_text()
    cluster.config.write_text(re.sub(r"^(\w+)=(.*)$", r" \1\t=  \2 \r", text, flags=re.MULTILINE))
    given = cluster.given("torque.prologue.0.vm", resources="nodes=1")
    assert cluster.first.pelog("prologue", given) == 0
    cluster.first.pelog("epilogue", first_given(cluster, "epilogue"))
    folder = cluster.records / SINGLE
    wait_for("its record", lambda: any('"pbs"' in p.read_text() for p in folder.glob("*.json")))


def test_a_sister_never_says_no_herself(cluster: Cluster) -> None:
    """At exit code 1 of a prologue.parallel Torque tries again for ever and takes the node down."""
    given = cluster.given("torque.prologue.parallel.203.vm", resources=ASKED)
    assert cluster.sister.pelog("prologue.parallel", given) == 0
    given = first_given(cluster, "prologue", resources=ASKED)
    assert cluster.first.pelog("prologue", given) == 1
    assert cluster.first.output.read_text().startswith("vmb: steelyard: --netem=delay=50ms: ")
    cluster.first.pelog("epilogue", first_given(cluster, "epilogue"))
    assert (cluster.left(), cluster.samplers()) == ([], [])


@pytest.mark.parametrize(("resources", "status"), [("nodes=1", 0), ("other=steelyard:tag=a%3Db", 0), ("other=mine,nodes=1", 0), ("other=steelyard:netem=none", 0), ("other=mine+steelyard:netem=delay%3D1ms,nodes=1", 1), ("nodes=1,other=steelyard:cache=cold", 1), ("other=steelyard:netem=none:cache=cold", 1), ("other=steelyard:netem=none:netem=delay%3D1ms", 1)])  # fmt: skip
def test_turned_off_only_conditions_are_refused(cluster: Cluster, resources: str, status: int) -> None:  # fmt: skip
    cluster.config.unlink()
    given = cluster.given("torque.prologue.0.vm", resources=resources)
    assert cluster.first.pelog("prologue", given) == status
    said = cluster.first.output.read_text()
    assert ("turned off" in said) == (status == 1)
    assert not list(cluster.records.iterdir())


@pytest.mark.parametrize(("resources", "status"), [("nodes=1", 0), (ASKED, 1)])
def test_an_unknown_user_has_no_condition(cluster: Cluster, resources: str, status: int) -> None:
    """As where the directory service does not answer."""
    given = cluster.given("torque.prologue.0.vm", resources=resources)
    given.words[1] = "steelyard-no-such-user"
    assert cluster.first.pelog("prologue", given) == status
    told = "the ids of user steelyard-no-such-user are not found"
    assert (told in cluster.first.output.read_text()) == (status == 1)


def write_job_file(node: Node, job: str, text: str) -> None:
    (node.mom_priv / "jobs" / f"{job}.JB").write_text(f"<?xml version='1.0'?>\n<job>\n  {text}\n</job>\n")  # fmt: skip


def test_what_the_list_of_2048_bytes_lost_is_found_in_the_moms_file(cluster: Cluster) -> None:
    other = '<other flags="3">steelyard:netem=delay%3D50ms</other>'
    write_job_file(cluster.first, SINGLE, other)
    assert cluster.first.pelog("prologue", cluster.given("torque.prologue.0.vm")) == 1
    assert "--netem=delay=50ms" in cluster.first.output.read_text()


def test_qsub_n_is_told_at_the_latest_in_the_end(cluster: Cluster) -> None:
    for script in ("prologue", "epilogue"):
        write_job_file(cluster.first, SINGLE, '<node_exclusive flags="1">1</node_exclusive>')
        assert cluster.first.pelog(script, cluster.given(f"torque.{script}.0.vm")) == 0
    assert cluster.record_of(SINGLE, "vm")["job"]["exclusive"] is True


@pytest.mark.parametrize("status", [0, 1, 2])
def test_the_sites_own_prologue_goes_on(cluster: Cluster, status: int) -> None:
    told = cluster.base / "told"
    site = cluster.first.mom_priv / "prologue.site"
    site.write_text(f'#!/bin/sh\nprintf "%s\\n" "$#" "$1" "$8" >{told}\nexit {status}\n')
    site.chmod(0o755)
    given = cluster.given("torque.prologue.0.vm")
    assert cluster.first.pelog("prologue", given) == status
    assert told.read_text().split() == ["8", SINGLE, str(site.parent / f"jobs/{SINGLE}.SC")]
    state = cluster.run / f"job/vm.{SINGLE}.json"
    assert state.exists() == (status == 0)


@pytest.mark.slow
def test_thirty_killed_prologues_leave_nothing(cluster: Cluster) -> None:
    pick = random.Random(13)
    for number in range(30):
        job = f"{number}.srv"
        given = cluster.given("torque.prologue.0.vm", job)
        launch(cluster, given, "exit 0", kill_after_s=pick.uniform(0.0, 0.06))
        assert cluster.first.pelog("epilogue", cluster.given("torque.epilogue.0.vm", job)) == 0
    wait_for("samplers to end", lambda: cluster.samplers() == [])
    assert cluster.left() == []
    for path in cluster.records.glob("*/*.json"):
        assert "complete" in json.loads(path.read_bytes())


def test_a_sister_without_an_epilogue_is_swept(cluster: Cluster) -> None:
    """If the first node's prologue refuses, Torque runs no epilogue.parallel."""
    given = cluster.given("torque.prologue.parallel.203.vm")
    assert cluster.sister.pelog("prologue.parallel", given) == 0
    sweep = cluster.base / "torque-sweep"
    sweep.write_bytes((cluster.base / "pelog").read_bytes())
    sweep.chmod(0o755)
    write_job_file(cluster.sister, JOB, f"<jobid>{JOB}</jobid>")
    state = cluster.run / "job" / f"vmb.{JOB}.json"
    age(state)
    subprocess.run([sweep, cluster.sister.mom_priv], check=True)
    assert state.exists(), "the mom still has the job"
    (cluster.sister.mom_priv / "jobs" / f"{JOB}.JB").unlink()
    subprocess.run([sweep, cluster.sister.mom_priv], check=True)
    assert (cluster.left(), cluster.samplers()) == ([], [])
    assert cluster.record_of(JOB, "vmb")["complete"] is False


def age(state: Path) -> None:
    """Two minutes older: what is young is left alone. By the time since boot, which nobody sets."""
    document = json.loads(state.read_text())
    document["written_boot_s"] -= 120
    state.write_text(json.dumps(document))
