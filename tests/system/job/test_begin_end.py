"""A job's begin and end on a node, as prologues and hooks report them."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.system.job.conftest import USER, is_there, make_old, mark, state_of
from tests.waiting import wait_for

from steelyard.wrappers.base.programs import find_node_program

# So much CPU time, however busy the machine.
UNCOUNTED = "neither the kernel nor a cgroup has counted the job's processes"
BURN = "/usr/bin/python3 -S -c 'import time\nwhile time.process_time() < {ms} / 1000: pass'"


def cpu_of_reaped_s(mom: Any, pid: int) -> float:
    """The kernel's own count of a child and all it has waited for, in its parent's."""
    ticks = os.sysconf("SC_CLK_TCK")

    def waited() -> int:
        words = Path(f"/proc/{mom.pid}/stat").read_text().rpartition(")")[2].split()
        return int(words[13]) + int(words[14])

    before = waited()
    mom.reap(pid)
    return (waited() - before) / ticks


def test_a_job_is_measured_from_its_marks_alone(node: Any) -> None:
    assert node.begin("7.srv", "--job=name=a b", "--rate=5").returncode == 0
    job = node.run_seen("7.srv", BURN.format(ms=700))
    truth_s = cpu_of_reaped_s(node.mom, job)
    totals = node.end("7.srv", "--exit-status=0")
    record = node.record("7.srv")
    assert record["incomplete_reason"].startswith(UNCOUNTED)
    assert abs(record["cpu"]["cpu_s"] - truth_s) <= 0.05
    assert totals["elapsed_s"] == pytest.approx(record["elapsed_s"], abs=1e-6)
    # The record says in the same place that it may lack some; the accounting has no room for that.
    assert totals["cpu_s"] is None
    assert totals["missing"]["cpu_s"] == "not all of the job's processes were counted"
    assert record["job"]["scheduler"] == "pbs"
    assert record["job"]["job_id"] == "7.srv"
    assert record["job"]["user_id"] == str(USER)
    assert record["job"]["name"] == "a b"
    assert record["job"]["exit_status"] == "0"
    assert node.left() == []
    assert node.log == ""


@pytest.mark.parametrize(
    "before",
    [{f"V{i}": "x" * 5000 for i in range(30)}, {"F": "x" * 100_000, "G": "x" * 8189}],
    ids=["many", "long"],
)
def test_an_environment_of_150_kb_before_the_marks_hides_no_job(
    node: Any, before: dict[str, str]
) -> None:
    """qsub -V of a shell with many modules: pbs_mom puts PBS_JOBID behind it all."""
    assert node.begin("7.srv").returncode == 0
    job = node.run_seen("7.srv", BURN.format(ms=300), before=before)
    truth_s = cpu_of_reaped_s(node.mom, job)
    node.end("7.srv")
    record = node.record("7.srv")
    assert record["incomplete_reason"].startswith(UNCOUNTED)
    assert abs(record["cpu"]["cpu_s"] - truth_s) <= 0.05


def test_what_a_job_does_in_its_last_moment_counts(node: Any) -> None:
    """One sample a second, and all of the work behind the last one."""
    node.begin("7.srv", "--rate=0.2")
    job = node.run_seen("7.srv", BURN.format(ms=600))
    truth_s = cpu_of_reaped_s(node.mom, job)
    node.end("7.srv")
    record = node.record("7.srv")
    assert record["incomplete_reason"].startswith(UNCOUNTED)
    assert abs(record["cpu"]["cpu_s"] - truth_s) <= 0.05


def test_a_daemons_umask_does_not_hide_records_from_their_owner(node: Any) -> None:
    """pbs_mom's prologues have 077: the user could not have read a record in a folder of root's."""
    before = os.umask(0o077)
    try:
        assert node.begin("7.srv").returncode == 0
        node.end("7.srv")
    finally:
        os.umask(before)
    folder = node.records / "7.srv"
    assert [path.stat().st_mode & 0o777 for path in (node.records, folder)] == [0o755, 0o755]
    (record,) = folder.glob("*.json")
    assert (record.stat().st_uid, record.stat().st_mode & 0o777) == (USER, 0o440)


def test_begun_twice_there_is_one_sampler(node: Any) -> None:
    node.begin("7.srv")
    first = node.sampler("7.srv")
    assert node.begin("7.srv").returncode == 0
    assert node.sampler("7.srv") == first
    node.end("7.srv")
    assert len(list((node.records / "7.srv").glob("*.json"))) == 1


def test_ended_twice_the_same_totals_are_told(node: Any) -> None:
    node.begin("7.srv", "--request=tag=a%3Db")
    first = node.end("7.srv")
    assert first["nodes_measured"] == 1
    assert first["tags"] == {"a": "b"}
    assert node.end("7.srv") == first


def test_ended_without_a_beginning(node: Any) -> None:
    totals = node.end("8.srv")
    assert (totals["nodes_measured"], totals["cpu_s"], totals["energy_j"]) == (0, None, None)
    assert totals["missing"]["cpu_s"] == "the sampler did not answer"


def test_an_earlier_end_is_not_told_of_a_later_start(node: Any) -> None:
    node.begin("7.srv")
    node.end("7.srv")
    (record,) = (node.records / "7.srv").glob("*.json")
    text = record.read_text()
    end = node.record("7.srv")["end_unix_s"]
    record.write_text(text.replace(f"{end}"[:10], f"{end - 3600}"[:10]))
    assert node.end("7.srv")["nodes_measured"] == 0


def test_a_start_without_a_sampler_is_not_told_what_the_one_before_used(node: Any) -> None:
    """Sent back and started again within a minute, while no sampler can be had."""
    node.begin("7.srv")
    assert node.end("7.srv")["nodes_measured"] == 1
    node.begin("7.srv", "--node-program=/bin/false")
    assert node.end("7.srv")["nodes_measured"] == 0


def test_what_an_earlier_start_has_left_is_ended_first(node: Any) -> None:
    """The job is restarted by another daemon before its earlier start was ended."""
    node.begin("7.srv", "--restart-count=0")
    first = node.sampler("7.srv")
    node.mom.die()
    node.mom = node.new_mom()
    time.sleep(1.1)  # its record has another second in its name
    assert node.begin("7.srv", "--restart-count=1").returncode == 0
    assert node.sampler("7.srv") != first
    assert not is_there(first)
    node.end("7.srv")
    records = sorted((node.records / "7.srv").glob("*.json"))
    documents = [json.loads(path.read_bytes()) for path in records]
    assert [d["incomplete_of"] for d in documents] == ["job", "processes"]
    assert "is gone: what" in documents[0]["incomplete_reason"]
    assert [d["job"]["restart_count"] for d in documents] == ["0", "1"]
    assert "left by an earlier start" in node.log


def test_the_sampler_outlives_its_daemon_and_sees_the_next_ones_tasks(node: Any) -> None:
    node.begin("7.srv", "--rate=10")
    sleeper = node.mom.start("7.srv", "sleep", "60")
    wait_for("it is seen", lambda: processes(node, "7.srv") == 1)
    node.mom.die()
    sampler = node.sampler("7.srv")
    node.mom = node.new_mom()
    task = node.mom.start("7.srv", "sh", "-c", BURN.format(ms=500) + "; sleep 60")
    wait_for("the new one's task", lambda: processes(node, "7.srv") == 3)
    wait_for("its work", lambda: (last(node, "7.srv", "cpu_s") or 0) > 0.3)
    os.kill(sleeper, signal.SIGKILL)
    os.killpg(task, signal.SIGKILL)
    node.mom.reap(task)
    wait_for("nobody is left", lambda: processes(node, "7.srv") == 0)
    time.sleep(0.3)
    assert is_there(sampler)  # it waits for word
    assert node.end("7.srv")["nodes_measured"] == 1
    record = node.record("7.srv")
    assert 0.3 < record["cpu"]["cpu_s"] < 0.8
    assert record["job"]["job_id"] == "7.srv"


def processes(node: Any, job_id: str) -> int | None:
    value = last(node, job_id, "processes")
    return None if value is None else int(value)


def last(node: Any, job_id: str, column: str) -> float | None:
    """Return a value of the last sample."""
    text = "".join(path.read_text() for path in (node.records / job_id).glob("*.csv"))
    header, *lines = text.rpartition("\n")[0].splitlines() or [""]
    cells = lines[-1].split(",") if lines else []
    at = header.split(",").index(column) if cells else 0
    return float(cells[at]) if cells and cells[at] else None


def test_others_processes_are_not_the_jobs(node: Any) -> None:
    """Another job's of the same user, another user's with the same marks, another node's (whose daemon
    shares this machine)."""
    node.begin("7.srv", "--rate=10")
    sister = node.new_mom()
    others = [
        node.mom.start("8.srv", "sleep", "60"),
        node.mom.start("7.srv", "sleep", "60", uid=USER - 1),
        sister.start("7.srv", "sleep", "60", node=1),
        sister.start("7.srv", "sleep", "60", node=0),  # as started by an mpirun here
    ]
    own = node.mom.start("7.srv", "sleep", "60")
    wait_for("its own", lambda: processes(node, "7.srv") == 1)
    time.sleep(0.5)
    assert processes(node, "7.srv") == 1
    for pid in [*others, own]:
        os.kill(pid, signal.SIGKILL)
        (sister if pid in others[-2:] else node.mom).reap(pid)


def test_a_task_that_brings_the_first_nodes_variables_is_the_jobs(node: Any) -> None:
    """tm_spawn hands its caller's environment on: mpirun's daemons have PBS_NODENUM=0 everywhere."""
    words = node.begin_arguments("7.srv", "--rate=10", node=1)
    assert node.call(*words).returncode == 0
    task = node.mom.start("7.srv", "sleep", "60", node=0)
    wait_for("the task", lambda: processes(node, "7.srv") == 1)
    os.kill(task, signal.SIGKILL)
    node.mom.reap(task)


def test_a_task_is_found_with_the_child_it_has_by_then(node: Any) -> None:
    """Both are new in the same sample, and the child is in its own session, like MPICH's ranks."""
    node.begin("7.srv", "--rate=10")
    wait_for("a sample", lambda: last(node, "7.srv", "elapsed_s"))
    (sampler,) = psutil.Process(node.sampler("7.srv")).children()
    sampler.suspend()
    task = node.mom.start("7.srv", "sh", "-c", "setsid sleep 60 & wait")
    (child,) = wait_for("its child", lambda: children(task))
    wait_for("its session", lambda: os.getsid(child) == child)
    sampler.resume()
    wait_for("both", lambda: processes(node, "7.srv") == 2)
    os.kill(child, signal.SIGKILL)
    node.mom.reap(task)


def test_one_that_was_forked_off_before_the_beginning_is_seen(node: Any) -> None:
    """Torque's prologue is started by the very process that becomes the job."""
    job = node.mom.start("7.srv", "sleep", "60", held=True)
    node.begin("7.srv", "--rate=10")
    node.mom.let_continue(job)
    wait_for("it has become the job", lambda: processes(node, "7.srv") == 1)
    os.kill(job, signal.SIGKILL)
    node.mom.reap(job)


def test_a_job_that_was_over_before_it_was_seen_is_told(node: Any) -> None:
    """Its record was complete, and all of it 0."""
    job = node.mom.start("7.srv", "true", held=True, late_session=True)
    node.begin("7.srv", f"--session={job}", "--rate=10")
    wait_for("a sample", lambda: last(node, "7.srv", "elapsed_s"))
    (child,) = psutil.Process(node.sampler("7.srv")).children()
    child.suspend()
    node.mom.let_continue(job)
    assert node.mom.reap(job) == 0
    child.resume()
    node.end("7.srv")
    record = wait_for("its record", lambda: ended(node, "7.srv"))
    assert (record["complete"], record["incomplete_of"]) == (False, "processes")
    assert record["incomplete_reason"].startswith(UNCOUNTED)


def ended(node: Any, job_id: str) -> Any:
    record = node.record(job_id)
    still = "the job was still running when this was written"
    return record if record["incomplete_reason"] != still else None


def test_an_orphan_without_marks_is_known_by_its_session(node: Any) -> None:
    node.begin("7.srv", "--rate=10")
    job = node.mom.start("7.srv", "sh", "-c", "sleep 0.5; env -i /bin/sleep 60 & exit")
    wait_for("its end", lambda: not is_there(job))
    node.mom.reap(job)
    wait_for("the orphan alone", lambda: processes(node, "7.srv") == 1)
    node.end("7.srv")
    os.killpg(job, signal.SIGKILL)


def test_nothing_that_ends_the_job_reaches_the_sampler(node: Any) -> None:
    subprocess.run(
        [find_node_program(), "job", *node.begin_arguments("7.srv")],
        env={"PBS_JOBID": "7.srv", "PBS_NODENUM": "0"}, check=True, timeout=90,
    )  # fmt: skip
    sampler = node.sampler("7.srv")
    words = Path(f"/proc/{sampler}/stat").read_text().rpartition(")")[2].split()
    assert int(words[3]) not in {os.getsid(0), node.mom.pid}
    own = Path(f"/proc/{sampler}/environ")
    wait_for("its own program", lambda: own.read_bytes().startswith(b"PATH="))
    assert b"PBS_" not in own.read_bytes()
    assert not any(fd.startswith("pipe:") for fd in descriptors(sampler))
    for pid in [sampler, *children(sampler)]:
        groups = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
        assert {line.split(":", 2)[2] for line in groups} == {"/"}


@pytest.fixture
def group() -> Iterator[Path]:
    """A cgroup of version 1 that counts CPU."""
    folder = Path(f"/sys/fs/cgroup/cpuacct/steelyard-job-{os.getpid()}")
    if os.geteuid() != 0 or not (folder.parent / "cpuacct.usage").exists():
        pytest.skip("needs root and cgroup version 1: makes a cgroup")
    folder.mkdir()
    yield folder
    wait_for("its emptiness", lambda: not (folder / "cgroup.procs").read_text())
    folder.rmdir()


def test_a_cgroup_counts_from_the_jobs_own_beginning(node: Any, group: Path) -> None:
    """Torque's first node runs prologues in it; and who is known by it is looked for at once."""
    (group / "cgroup.procs").chmod(0o666)
    join = f"echo $$ >{group}/cgroup.procs"
    burn = "i=0; while [ $i -lt 24000 ]; do i=$((i+1)); done"
    subprocess.run(["sh", "-c", f"{join}; {burn}"], check=True)
    before_s = int((group / "cpuacct.usage").read_text()) / 1e9
    assert before_s > 0.004, "and, where it can, less than what could be rounding, 0.05"
    assert node.begin("7.srv", f"--cgroup=/{group.name}").returncode == 0
    job = node.mom.start("7.srv", "sh", "-c", f"{join}; head -c 3000000 /dev/zero | wc -c; sleep 0.2")  # fmt: skip
    wait_for("its end", lambda: not is_there(job) and node.mom.reap(job) is not None)
    counted_s = int((group / "cpuacct.usage").read_text()) / 1e9 - before_s
    node.end("7.srv")
    record = node.record("7.srv")
    assert record["cpu"]["source"] == "cgroup1"
    assert record["cpu"]["cpu_s"] == pytest.approx(counted_s, abs=0.003)
    if record["complete"]:
        assert record["io"]["wchar_bytes"] >= 3000000
    else:  # another was faster
        assert record["io"]["wchar_bytes"] is None
        assert "that no step reported" in record["missing"]["io.wchar_bytes"]


def test_a_task_that_was_waited_for_before_it_was_read_is_not_complete(
    node: Any, group: Path
) -> None:
    """It used less CPU than cgroup and reports may differ by, and wrote 3 MB that nobody has counted:
    the record was complete, with what the last sample had of it."""
    (group / "cgroup.procs").chmod(0o666)
    assert node.begin("7.srv", f"--cgroup=/{group.name}", "--rate=10").returncode == 0
    work = "head -c 3000000 /dev/zero | cat >/dev/null"
    script = f"echo $$ >{group}/cgroup.procs; kill -STOP $$; {work}"
    job = node.mom.start("7.srv", "sh", "-c", script)
    wait_for("it is seen", lambda: (processes(node, "7.srv") or 0) > 0)
    (child,) = psutil.Process(node.sampler("7.srv")).children()
    wait_for("it has stopped itself", lambda: state_of(job) == "T")
    child.suspend()
    os.kill(job, signal.SIGCONT)
    wait_for("its end", lambda: not is_there(job) and node.mom.reap(job) is not None)
    child.resume()
    totals = node.end("7.srv")
    record = wait_for("its record", lambda: ended(node, "7.srv"))
    assert (record["complete"], record["incomplete_of"]) == (False, "processes")
    assert "tasks ended before their last counters were read" in record["incomplete_reason"]
    assert record["io"]["wchar_bytes"] is None
    # The cgroup has counted its CPU. Memory is of its processes here.
    assert totals["cpu_s"] == pytest.approx(record["cpu"]["cpu_s"], abs=1e-6)
    assert (totals["max_memory_bytes"], totals["wchar_bytes"]) == (None, None)
    assert totals["missing"]["wchar_bytes"] == "not all processes were seen (cpu_unseen_s)"


def descriptors(pid: int) -> Iterator[str]:
    """What a process has open; it opens and closes others meanwhile."""
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            yield str(path.readlink())


def children(pid: int) -> list[int]:
    return [int(w) for w in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_job_that_asks_for_nothing_is_not_kept_waiting(node: Any) -> None:
    times = [time.monotonic()]
    for _ in range(5):
        node.begin("7.srv")
        node.end("7.srv")
        times.append(time.monotonic())
    assert min(after - before for before, after in itertools.pairwise(times)) < 2


def test_names_longer_than_a_sockets_path(node: Any) -> None:
    job_id = "12345[678]." + "server-with-a-long-name." * 5 + "example.org"
    assert node.begin(job_id, "--request=tag=k%3Dv").returncode == 0
    assert node.end(job_id)["tags"] == {"k": "v"}
    assert node.left() == []


@pytest.mark.parametrize("odd", ["a\nb", "$(touch x)", "a'b\"c", "ü", "x" * 900])
def test_odd_names_of_jobs(node: Any, odd: str) -> None:
    assert node.begin("7.srv", f"--job=name={odd}").returncode == 0
    node.end("7.srv")
    assert node.record("7.srv")["job"]["name"] == (None if "\n" in odd else odd)


def test_a_task_met_in_the_middle_of_its_exec_is_looked_at_again(node: Any) -> None:
    """Then its environment is empty for a moment; here for long, and it is the daemon's child."""
    node.begin("7.srv", "--rate=10")
    own = node.mom.start("7.srv", "sleep", "60")
    wait_for("its first", lambda: processes(node, "7.srv") == 1)
    later = f"/bin/sleep 0.5; export {mark('7.srv')} PBS_NODENUM=0; exec /bin/sleep 60"
    task = node.mom.start("7.srv", "/usr/bin/env", "-i", "/bin/sh", "-c", later)
    wait_for("its task", lambda: processes(node, "7.srv") == 2)
    for pid in (own, task):
        os.kill(pid, signal.SIGKILL)
        node.mom.reap(pid)


def test_without_samples_nobody_knows_whether_the_job_came(node: Any) -> None:
    node.begin("7.srv", "--request=sample-rate=0")
    node.mom.reap(node.mom.start("7.srv", "sh", "-c", BURN.format(ms=100)))
    totals = node.end("7.srv")
    record = node.record("7.srv")
    assert record["incomplete_reason"].startswith(UNCOUNTED)
    assert record["processes"]["named"]
    assert totals["cpu_s"] is None and "nodes_idle" not in totals
    assert record["missing"]["cpu.cpu_s"]


def test_what_was_read_before_sampling_was_switched_off_is_not_the_jobs_cpu(node: Any) -> None:
    """The first sample has seen the job's process, and the request comes after it."""
    job = node.mom.start("7.srv", "sh", "-c", f"{BURN.format(ms=300)}; kill -STOP $$")
    node.begin("7.srv")
    wait_for("it is seen", lambda: job in node.watched("7.srv"))
    node.begin("7.srv", "--request=sample-rate=0")
    node.mom.let_continue(job)
    node.mom.reap(job)
    totals = node.end("7.srv")
    record = node.record("7.srv")
    assert totals["cpu_s"] is None
    assert record["cpu"]["source"] is None
    assert record["missing"]["cpu.cpu_s"].startswith("sampling was switched off (rate 0)")


def test_a_node_that_nothing_of_the_job_came_to(node: Any) -> None:
    node.begin("7.srv")
    totals = node.end("7.srv")
    assert not node.record("7.srv")["processes"]["named"]
    assert (totals["nodes_idle"], totals["cpu_s"]) == (1, None)
    assert totals["missing"]["cpu_s"] == "no step of the job was on any node"


def test_many_tags_reach_a_sampler_that_still_starts(node: Any) -> None:
    """Its socket holds ten messages as a rule."""
    tags = {f"k{i}": f"v{i}" for i in range(32)}
    node.begin("7.srv", "--request=" + ":".join(f"tag={k}%3D{v}" for k, v in tags.items()))
    node.end("7.srv")
    assert node.record("7.srv")["tags"] == tags


def test_a_node_whose_name_begins_with_anothers(node: Any) -> None:
    """Both on one machine: a sweep of the one leaves the other's jobs alone."""
    where = [f"--run-dir={node.run}", f"--record-dir={node.records}", "--node=n1.b"]
    words = [w for w in node.begin_arguments("7.srv") if w != "--node=n1"]
    assert node.call(*words, "--node=n1.b").returncode == 0
    state = node.run / "job" / "n1.b.7.srv.json"
    make_old(state)
    node.sweep("--only-alive")
    assert state.exists()
    assert node.call("end", "--job-id=7.srv", *where).returncode == 0
    assert node.left() == ["n1.b.log"]


def test_two_jobs_at_once_are_not_alone_whatever_the_scheduler_says(node: Any) -> None:
    """OverSubscribe=FORCE: two jobs of a node of 1,010 J had 912.8 and 912.4 J of it in sacct."""
    alone = "--exclusive=yes"
    assert node.begin("7.srv", alone).returncode == 0
    first = node.run_seen("7.srv", BURN.format(ms=20))
    assert node.begin("8.srv", alone).returncode == 0
    second = node.run_seen("8.srv", BURN.format(ms=20))
    totals = [node.end("7.srv"), node.end("8.srv", alone)]
    assert [total["exclusive"] for total in totals] == [False, False]
    assert [total["rx_bytes"] for total in totals] == [None, None]
    records = [node.record("7.srv"), node.record("8.srv")]
    assert [record["job"]["exclusive"] for record in records] == [False, False]
    assert node.begin("9.srv", alone).returncode == 0
    third = node.run_seen("9.srv", BURN.format(ms=20))
    assert node.end("9.srv")["exclusive"] is True
    assert node.record("9.srv")["job"]["exclusive"] is True
    for job in (first, second, third):
        node.mom.reap(job)
