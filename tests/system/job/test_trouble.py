"""Errors on a node are in its log, and affect no job."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.processes import each_process
from tests.system.job.conftest import is_there, make_old, mark
from tests.waiting import wait_for

from steelyard.wrappers.base.programs import find_node_program

TRIES = int(os.environ.get("STEELYARD_FAULT_TRIES", "6"))
SEED = int(os.environ.get("STEELYARD_FAULT_SEED", "1"))


def test_a_record_folder_of_somebody_else(node: Any) -> None:
    os.chown(node.records, 65000, 65000)
    assert node.begin("7.srv").returncode == 0
    wait_for("the complaint", lambda: "belongs to uid 65000" in node.log)
    assert node.end("7.srv")["nodes_measured"] == 0
    assert node.left() == []


def test_a_run_folder_of_somebody_else(node: Any) -> None:
    node.run.mkdir()
    node.run.chmod(0o777)
    done = node.begin("7.srv")
    assert (done.returncode, done.stderr) == (0, "")
    assert node.left() == [] and node.log == ""  # nothing goes into it: it could be a link
    refused = node.begin("7.srv", "--exclusive=yes", "--request=netem=rate%3D1mbit")
    assert refused.returncode == 4
    assert "may be written by others" in refused.stderr
    assert node.end("7.srv")["nodes_measured"] == 0
    node.sweep()


def test_no_program(node: Any) -> None:
    done = node.begin("7.srv", "--node-program=/no/such")
    assert (done.returncode, done.stderr) == (0, "")
    assert "not sampled: cannot run node_program=/no/such" in node.log


def test_a_configuration_that_others_may_write(node: Any) -> None:
    config = node.base / "pbs.conf"
    config.write_text("rate=5\n")
    config.chmod(0o666)
    assert node.begin("7.srv", f"--config={config}").returncode == 0
    assert "pbs.conf may be written by others" in node.log
    assert node.end("7.srv")["nodes_measured"] == 1


def test_a_full_disk(node: Any) -> None:
    if shutil.which("mount") is None or subprocess.run(["mount", "-V"], check=False).returncode:
        pytest.skip("needs mount")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=32k,mode=755", "none", node.records],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted: {mounted.stderr}")
    try:
        (node.records / "filler").write_bytes(bytes(28 << 10))
        assert node.begin("7.srv", "--rate=100").returncode == 0
        time.sleep(1)
        done = node.call("end", "--job-id=7.srv", *node.where())
        assert done.returncode == 0
        assert done.stdout.startswith('{"steelyard":1,')
    finally:
        subprocess.run(["umount", "-l", node.records], check=True)
    assert node.left() == []


@pytest.mark.parametrize("words", [["--rate=x"], ["--owner=root"], ["--mark=X"], ["surplus"]])
def test_wrong_usage_is_told(node: Any, words: list[str]) -> None:
    done = node.call(*node.begin_arguments("7.srv"), *words)
    assert done.returncode == 2
    assert done.stderr


def test_a_wrong_tag_is_left_out_and_a_wrong_condition_refused(node: Any) -> None:
    assert node.begin("7.srv", "--request=tag=x:sample-rate=1e9").returncode == 0
    assert "--tag=x: expected KEY=VALUE" in node.log
    assert "--sample-rate=1e9" in node.log
    node.end("7.srv")
    done = node.begin("8.srv", "--exclusive=yes", "--request=netem=dealy%3D5ms")
    assert (done.returncode, done.stderr.count("\n")) == (4, 1)
    assert done.stderr.startswith("steelyard: --netem=dealy=5ms: ")
    assert node.left() == []
    assert node.record("8.srv")["job"]["job_id"] == "8.srv"


def test_a_sampler_that_was_killed_leaves_a_record(node: Any) -> None:
    node.begin("7.srv", "--rate=10")
    sleeper = start_sleeper(node, "7.srv")
    time.sleep(1.5)
    os.kill(node.sampler("7.srv"), signal.SIGKILL)
    node.sweep()
    assert node.state("7.srv").exists()  # the job goes on
    node.end("7.srv")
    wait_for("the record", lambda: node.left() == [])
    assert node.record("7.srv")["incomplete_reason"].startswith("the sampler was killed")
    os.kill(sleeper, signal.SIGKILL)
    node.mom.reap(sleeper)


def test_the_end_waits_for_the_child_of_a_sampler_that_is_killed_meanwhile(node: Any) -> None:
    """Nobody could finish the record while it was at work, and nobody did until another job came."""
    node.begin("7.srv", "--rate=10")
    sampler = psutil.Process(node.sampler("7.srv"))
    (child,) = wait_for("its child", sampler.children)
    for process in (sampler, child):
        process.suspend()

    def go_on() -> None:
        with contextlib.suppress(psutil.NoSuchProcess):  # the kernel's word to orphans came first
            child.resume()

    events = [threading.Timer(1, sampler.kill), threading.Timer(2.5, go_on)]
    for event in events:
        event.start()
    node.end("7.srv")
    for event in events:
        event.join()
    wait_for("the record", lambda: node.left() == [])
    assert node.record("7.srv")["incomplete_reason"].startswith("the sampler was killed")


def test_a_job_that_its_scheduler_does_not_know_any_more(node: Any) -> None:
    for job_id in ("7.srv", "8.srv", "9.srv"):
        node.begin(job_id)
        make_old(node.state(job_id))
    sleeper = start_sleeper(node, "9.srv")
    node.sweep("--only-alive", "--alive=7.srv")
    assert node.state("7.srv").exists() and node.state("9.srv").exists()
    assert not node.state("8.srv").exists()
    assert not node.record("8.srv")["complete"]
    assert "8.srv: the scheduler does not know it any more" in node.log
    os.kill(sleeper, signal.SIGKILL)
    node.mom.reap(sleeper)


def test_a_job_lives_in_a_task_with_the_first_nodes_number(node: Any) -> None:
    """As the daemons of an mpirun that starts them by tm_spawn."""
    assert node.call(*node.begin_arguments("7.srv", node=1)).returncode == 0
    make_old(node.state("7.srv"))
    task = start_sleeper(node, "7.srv")  # PBS_NODENUM=0
    node.sweep("--only-alive")
    assert node.state("7.srv").exists()
    os.kill(task, signal.SIGKILL)
    node.mom.reap(task)
    node.sweep("--only-alive")
    assert not node.state("7.srv").exists()


def start_sleeper(node: Any, job_id: str) -> int:
    pid: int = node.mom.start(job_id, "sleep", "60")
    environment = Path(f"/proc/{pid}/environ")
    wait_for("its own program", lambda: b"PBS_JOBID" in environment.read_bytes())
    return pid


def test_without_word_from_anybody_the_sampler_ends(node: Any) -> None:
    """Its daemon and its job are gone, and nobody has come back."""
    words = [
        find_node_program(), "sample", f"--record-dir={node.records}", f"--run-dir={node.run}",
        "--job-id=7.srv", "--node=n1", f"--watch={node.mom.pid}", f"--parent={node.mom.pid}",
        f"--orphan={mark('7.srv')}", "--owner=65533:65533", "--rate=20", "--linger=1",
    ]  # fmt: skip
    node.run.mkdir()
    sampler = subprocess.Popen(words)
    sleeper = start_sleeper(node, "7.srv")
    wait_for("it watches the daemon", lambda: [*(node.records / "7.srv").glob("*.json")])
    node.mom.die()
    time.sleep(1.5)
    assert sampler.poll() is None  # a process of the job lives
    os.kill(sleeper, signal.SIGKILL)
    ended = time.monotonic()
    assert sampler.wait(90) == 0
    assert 0.9 <= time.monotonic() - ended < 60
    record = node.record("7.srv")
    assert not record["complete"]
    assert "is gone: what" in record["incomplete_reason"]


# --- conditions, in a network of the test's own ---


class Shaped:
    """A node with a network device."""

    def __init__(self, node: Any, name: str) -> None:
        self.node, self.name = node, name
        self.policy = node.base / "netem.conf"
        self.policy.write_text("enabled yes\nmin_rate 1mbit\n")
        self.policy.chmod(0o644)
        self.before = self.tree()

    def inside(self, *words: str | Path) -> list[str | Path]:
        return ["ip", "netns", "exec", self.name, *words]

    def tree(self) -> str:
        return subprocess.run(
            self.inside("tc", "qdisc", "show"), capture_output=True, text=True, check=True
        ).stdout

    def call(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.inside(find_node_program(), "job", *words),
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    def begin_arguments(self, job_id: str, spec: str = "rate%3D10mbit") -> list[str]:
        return self.node.begin_arguments(
            job_id, "--exclusive=yes", f"--netem-policy={self.policy}", f"--request=netem={spec}"
        )

    def is_clean(self) -> bool:
        return self.tree() == self.before and self.node.left() == []


@pytest.fixture
def shaped(node: Any) -> Iterator[Shaped]:
    name = f"sy-job-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"needs a network namespace: {made.stderr}")
    try:
        for words in (
            "ip link set lo up",
            "ip link add v0 type veth peer name v1",
            "ip addr add 10.9.9.1/24 dev v0",
            "ip link set v0 up",
            "ip link set v1 up",
            "ip route add default dev v0",
        ):
            subprocess.run(["ip", "netns", "exec", name, *words.split()], check=True)
        yield Shaped(node, name)
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


def test_a_condition_holds_until_the_jobs_end(node: Any, shaped: Shaped) -> None:
    done = shaped.call(*shaped.begin_arguments("7.srv"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "57e1:" in shaped.tree()
    ended = shaped.call("end", "--job-id=7.srv", *node.where())
    assert '"netem":"rate=10mbit"' in ended.stdout
    assert shaped.is_clean()
    conditions = node.record("7.srv")["network_conditions"]
    assert (conditions["requested"], conditions["undone"]) == ("rate=10mbit", True)
    assert conditions["undone_by"] == "job"


def test_a_condition_that_cannot_be_had_leaves_nothing(node: Any, shaped: Shaped) -> None:
    done = shaped.call(*shaped.begin_arguments("7.srv", "rate%3D20kbit"))
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith("steelyard: --netem=rate=20kbit: ")
    assert shaped.is_clean()
    assert "refused: --netem=rate=20kbit" in node.record("7.srv")["missing"]["network_conditions"]


@pytest.mark.parametrize("group", [(), ("--cgroup=/torque/7.srv",)], ids=["none", "version 1"])
def test_a_shared_node_without_a_cgroup_that_tells_traffic(
    node: Any, shaped: Shaped, group: tuple[str, ...]
) -> None:
    shaped.policy.write_text(shaped.policy.read_text() + "exclusive_only no\n")
    words = [w for w in shaped.begin_arguments("7.srv") if w != "--exclusive=yes"]
    done = shaped.call(*words, *group)
    assert done.returncode == 4
    assert "ask for whole nodes" in done.stderr
    assert "57e1:" not in shaped.tree()
    assert shaped.is_clean()


def test_a_condition_outlives_its_sampler_while_the_job_runs(node: Any, shaped: Shaped) -> None:
    shaped.call(*shaped.begin_arguments("7.srv"))
    sleeper = start_sleeper(node, "7.srv")
    os.kill(node.sampler("7.srv"), signal.SIGKILL)
    wait_for("its end", lambda: not is_there(node.sampler("7.srv")))
    make_old(node.state("7.srv"))
    shaped.call("sweep", *node.where())
    assert "57e1:" in shaped.tree()
    os.kill(sleeper, signal.SIGKILL)
    node.mom.reap(sleeper)
    shaped.call("sweep", *node.where())
    wait_for("nothing left", lambda: node.left() == [])
    assert shaped.is_clean()


def test_a_begin_that_is_killed_over_a_condition_leaves_none(node: Any, shaped: Shaped) -> None:
    """Its end finds nothing to undo yet, and the daemon lives on."""
    held = node.base / "held"
    program = node.other_program(
        "stops-first",
        '[ "$1" = sample ] && exit 1\n'
        f'[ "$1 $2" != "netem apply" ] || {{ echo $$ >{held}.new; mv {held}.new {held}; kill -s STOP $$; }}\n'
        'exec $program "$@"',
    )
    words = shaped.begin_arguments(
        "7.srv", "rate%3D10mbit%2Cto%3D10.9.9.77"
    )  # nobody's: no echo comes
    begin = subprocess.Popen(
        shaped.inside(find_node_program(), "job", *words, f"--node-program={program}"),
        start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    wait_for("the program that puts it in place", held.exists)
    applying = psutil.Process(int(held.read_text()))
    wait_for("it stands", lambda: applying.status() == psutil.STATUS_STOPPED)
    kill_tree(begin)
    assert applying.status() == psutil.STATUS_STOPPED, "it outlives its begin"
    applying.resume()
    shaped.call("end", "--job-id=7.srv", *node.where())
    wait_for("its end", lambda: not is_there(applying.pid))
    assert shaped.is_clean(), shaped.tree()
    shaped.call("sweep", *node.where())
    assert shaped.is_clean(), shaped.tree()


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    """As an alarm of pbs_mom does: what is in its process group."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize("number", range(TRIES))
def test_nothing_stays_behind_a_kill(node: Any, shaped: Shaped, number: int) -> None:
    """A begin that is killed at any moment; then, by chance, its sampler, its job, its daemon."""
    chance = random.Random(SEED * 1000 + number)
    begin = subprocess.Popen(
        shaped.inside(find_node_program(), "job", *shaped.begin_arguments("7.srv")),
        start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    time.sleep(chance.uniform(0, 0.15))
    kill_tree(begin)
    if chance.random() < 0.3:
        job = node.mom.start("7.srv", "sleep", "60")
        time.sleep(chance.uniform(0, 0.1))
        os.kill(job, signal.SIGKILL)
        node.mom.reap(job)
    if chance.random() < 0.4 and node.state("7.srv").exists():
        kill_sampler(node)
    way = chance.choice(["sweep", "end", "begin and end", "daemon gone, sweep"])
    if way == "daemon gone, sweep":
        node.mom.die()
    if way == "begin and end":
        assert shaped.call(*shaped.begin_arguments("7.srv")).returncode == 0
    if "end" in way:
        assert shaped.call("end", "--job-id=7.srv", *node.where()).returncode == 0

    def is_swept() -> bool:
        make_old(node.state("7.srv"))
        shaped.call("sweep", *node.where(), "--only-alive")
        return shaped.is_clean() and not ours(node.run)

    try:
        wait_for(f"nothing left after {way}", is_swept)
    except AssertionError:
        pytest.fail(f"{way}: {node.left()} {ours(node.run)} {shaped.tree()} {node.log}")


def kill_sampler(node: Any) -> None:
    """Where begin came as far as that; 0 would be our own group."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        if pid := node.sampler("7.srv"):
            os.kill(pid, signal.SIGKILL)


def ours(run: Path) -> list[int]:
    """Processes that were started with that folder."""
    return [pid for pid, words in each_process("cmdline") if str(run).encode() in words]
