"""Network conditions on this machine's own kernel: put in place, refused, undone, also after a kill.

Everything happens in network namespaces made here. A rate needs sch_tbf and sch_htb or sch_prio.
STEELYARD_FAULT_TRIES: so many times as many kills (1; `tests/run.sh soak`: 30).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.system.network.netem_wire import NODE, OFFLOADS, Lab, two_namespaces
from tests.throwaway_lab import until

KILLS = 6 * int(os.environ.get("STEELYARD_FAULT_TRIES", "1"))
STEPS = "!wait4,clock_nanosleep"  # how often tc is waited for varies
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with two_namespaces(tmp_path) as made:
        yield made


@pytest.mark.parametrize(
    "spec",
    [
        "rate=10mbit,dev=v0",
        "rate=10mbit,to=10.77.0.2",
        "rate=10mbit,to=10.77.0.0/24,port=80,port=1094",
        "rate=10mbit,dev=v0,direction=both",
        "rate=10mbit,dev=v0,direction=ingress,to=10.77.0.2",
        "rate=10mbit,dev=v0,rto_min=5ms",
    ],
)
def test_what_was_there_before_is_there_after(lab: Lab, spec: str) -> None:
    before = lab.tree()
    done = lab.apply(spec)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["applied"] == json.loads(done.stdout)["requested"]
    assert lab.tree() != before
    assert lab.finish()["undone"] is True
    assert lab.tree() == before


@pytest.mark.parametrize("kind", ["pfifo limit 77", "bfifo limit 9000", "pfifo_fast", "mq"])
def test_a_plain_root_comes_back_with_its_handle_and_options(lab: Lab, kind: str) -> None:
    lab.inside("tc", "qdisc", "add", "dev", "v0", "root", "handle", "5:", *kind.split())
    if kind == "mq":
        lab.inside("tc", "qdisc", "add", "dev", "v0", "parent", "5:2", "handle", "6:", "pfifo",
                   "limit", "9")  # fmt: skip
    before = lab.tree()
    assert " 5: " in before
    assert lab.apply("rate=10mbit,dev=v0").returncode == 0
    assert lab.finish()["undone"] is True
    assert lab.tree() == before


@pytest.mark.parametrize("kind", ["tbf rate 1mbit burst 10kb limit 20kb", "htb default 3"])
def test_somebody_elses_root_is_refused_by_name(lab: Lab, kind: str) -> None:
    lab.inside("tc", "qdisc", "add", "dev", "v0", "root", "handle", "5:", *kind.split())
    before = lab.tree()
    done = lab.apply("rate=10mbit,dev=v0")
    assert (done.returncode, done.stdout) == (4, "")
    assert f"v0 is shaped by somebody else: its root qdisc is {kind.split()[0]} 5:" in done.stderr
    assert lab.tree() == before
    assert not list((lab.run / "netem").glob("*.json"))


def test_an_ingress_qdisc_of_others_is_refused(lab: Lab) -> None:
    lab.inside("tc", "qdisc", "add", "dev", "v0", "ingress")
    before = lab.tree()
    done = lab.apply("rate=10mbit,dev=v0,direction=ingress")
    assert done.returncode == 4
    assert "ingress or clsact" in done.stderr
    assert lab.tree() == before


def test_conditions_share_a_device_only_when_they_cannot_meet(lab: Lab) -> None:
    before = lab.tree()
    assert lab.apply("rate=10mbit,dev=v0,to=10.1.0.0/16", "1").returncode == 0
    assert "n.1 (rate=10mbit" in lab.apply("rate=5mbit,dev=v0", "2").stderr
    assert lab.apply("rate=5mbit,dev=v0,to=10.1.2.0/24", "2").returncode == 4
    assert lab.apply("rate=5mbit,dev=v0,to=10.2.0.0/16", "2").returncode == 0
    assert "condition on this node already" in lab.apply("rate=5mbit,to=10.3.0.1", "2").stderr
    lab.finish("1")
    assert "5803:" in lab.tree()
    lab.finish("2")
    assert lab.tree() == before


def test_the_sixteenth_condition_is_refused(lab: Lab) -> None:
    before = lab.tree()
    for number in range(15):
        done = lab.apply(f"rate=1mbit,dev=v0,to=10.{number}.0.0/16", str(number))
        assert done.returncode == 0, done.stderr
    assert "15 conditions already" in lab.apply("rate=1mbit,dev=v0,to=11.0.0.0/8", "99").stderr
    assert lab.netem("clear", "--all").returncode == 0
    assert lab.tree() == before


def test_what_nobody_owns_any_more_is_reaped(lab: Lab) -> None:
    before = lab.tree()
    owner = subprocess.Popen(["sleep", "600"])
    try:
        assert lab.apply("rate=1mbit,dev=v0", "1", f"--watch={owner.pid}").returncode == 0
        assert lab.netem("reap").returncode == 0
        assert lab.tree() != before
        assert json.loads(lab.netem("show", "--json").stdout)[0]["stale"] is False
    finally:
        owner.kill()
        owner.wait()
    assert "STALE" in lab.netem("show").stdout
    assert lab.netem("reap").returncode == 0
    assert lab.tree() == before


def wait_ending(lab: Lab, ending: subprocess.Popen[bytes]) -> None:
    """Wait until the state names the process that undoes it: its echoes are under way."""
    until(lambda: state_has(lab, f'"watch_pid":{ending.pid},'), "it is about to end")


def test_nobody_waits_for_the_echoes_of_an_ending_job(lab: Lab) -> None:
    before = lab.tree()
    slow = "rate=2kbit,dev=v0,to=10.77.0.0/24"  # an echo takes 0.4 s there, five of them 3 s
    assert lab.apply(slow, "1", "--peer=10.77.0.2").returncode == 0
    argv = ["nsenter", f"--net=/run/netns/{lab.here}", str(NODE), "netem", "finish",
            f"--run-dir={lab.run}", "--node=n", "--job-id=1"]  # fmt: skip
    with subprocess.Popen(argv) as ending:
        wait_ending(lab, ending)
        assert lab.apply("rate=10mbit,dev=v0,to=10.78.0.0/24", "2").returncode == 0
        assert lab.netem("reap").returncode == 0
        assert ending.poll() is None
    done = json.loads((lab.run / "netem/n.1.done.json").read_text())
    assert done["rtt"]["during_end"]["received"] == 5
    assert done["rtt"]["after"]["received"] == 25
    assert done["counters"]["sent_packets"] >= 10
    assert (done["valid"], done["undone"], done["undone_by"]) == (True, True, "job")
    lab.finish("2")
    assert lab.tree() == before


def test_an_ending_job_that_is_killed_is_anybodys(lab: Lab) -> None:
    before = lab.tree()
    assert lab.apply("rate=2kbit,dev=v0", "1", "--peer=10.77.0.2").returncode == 0
    argv = ["nsenter", f"--net=/run/netns/{lab.here}", str(NODE), "netem", "finish",
            f"--run-dir={lab.run}", "--node=n", "--job-id=1"]  # fmt: skip
    with subprocess.Popen(argv) as ending:
        wait_ending(lab, ending)
        ending.kill()
    assert lab.tree() != before
    assert lab.netem("reap").returncode == 0
    assert lab.tree() == before


def test_clear_all_finds_a_root_that_no_state_knows(lab: Lab) -> None:
    before = lab.tree()
    assert lab.apply("rate=1mbit,dev=v0,direction=both").returncode == 0
    (lab.run / "netem/n.1.json").unlink()
    assert lab.netem("clear", "--all").returncode == 0
    assert lab.tree() == before


def steps(lab: Lab, *words: str) -> list[tuple[str, int]]:
    """Return the system calls of a command, without those of waiting for tc.

    Each is a name, and its number among those of this name, as strace counts them.
    """
    log = lab.run.parent / "calls"
    lab.inside("strace", "-e", f"trace={STEPS}", "-o", str(log), str(NODE), "netem", *words)
    names = [line.split("(")[0] for line in log.read_text().splitlines() if "(" in line]
    return [(name, names[: at + 1].count(name)) for at, name in enumerate(names)]


@pytest.mark.parametrize("dying", ["apply", "finish"])
def test_killed_at_any_step_the_next_one_undoes_it(lab: Lab, dying: str) -> None:
    lab.inside("tc", "qdisc", "add", "dev", "v0", "root", "handle", "5:", "pfifo", "limit", "77")
    before = lab.tree()
    spec = "rate=10mbit,dev=v0,direction=both,rto_min=5ms"
    whose = (f"--run-dir={lab.run}", "--node=n", "--job-id=1")

    def command(owner: int) -> tuple[str, ...]:
        apply = ("apply", *whose, "--no-policy", "--uid=0", f"--watch={owner}", "--", spec)
        return apply if dying == "apply" else ("finish", *whose)

    lab.run.mkdir()
    with owner() as pid:
        if dying == "finish":
            assert lab.apply(spec, "1", f"--watch={pid}").returncode == 0
        made = steps(lab, *command(pid))
    assert lab.netem("reap").returncode == 0
    killed = 0
    for number in range(KILLS):
        name, count = kill_at = made[40 + (len(made) - 40) * number // KILLS]
        with owner() as pid:
            if dying == "finish":
                assert lab.apply(spec, "1", f"--watch={pid}").returncode == 0
            shot = lab.inside("strace", "-o", "/dev/null", f"--inject={name}:signal=KILL:when={count}",
                       str(NODE), "netem", *command(pid))  # fmt: skip
        killed += shot.returncode in (-9, 137)
        done = lab.netem("reap")
        assert done.returncode == 0, (kill_at, done.stderr)
        assert lab.tree() == before, kill_at
    assert killed > KILLS * 3 / 4
    assert not (lab.run / "netem/n.1.json").exists()


def state_has(lab: Lab, pattern: str) -> bool:
    path = lab.run / "netem/n.1.json"
    return path.exists() and re.search(pattern, path.read_text()) is not None


@pytest.mark.parametrize("moment", ["before", "meanwhile"])
def test_whoever_asked_is_gone_before_it_is_in_place(lab: Lab, moment: str) -> None:
    """The caller was killed while echoes were under way: no process can undo the condition."""
    before = lab.tree()
    spec = "rate=2kbit,dev=v0,to=10.77.0.0/24"  # an echo takes 0.4 s there, five of them 3 s
    argv = ["nsenter", f"--net=/run/netns/{lab.here}", str(NODE), "netem", "apply", "--node=n",
            f"--run-dir={lab.run}", "--job-id=1", "--uid=0", "--no-policy"]  # fmt: skip
    with owner() as pid, contextlib.ExitStack() as stack:
        words = (f"--watch={pid}", "--peer=10.77.0.2", "--", spec)
        if moment == "before":
            os.kill(pid, signal.SIGKILL)
        applying = stack.enter_context(
            subprocess.Popen([*argv, *words], stderr=subprocess.PIPE, text=True)
        )
        if moment == "meanwhile":
            until(lambda: state_has(lab, r'"apply_s":\d'), "it is in place, and echoes are sent")
            assert applying.poll() is None
            os.kill(pid, signal.SIGKILL)
        said = applying.communicate(timeout=60)[1]
    assert applying.returncode == 4
    assert f"process {pid}, at whose end it would be undone, has ended" in said
    assert lab.tree() == before
    assert not list((lab.run / "netem").glob("*.json"))


def test_what_never_came_to_hold_leaves_no_document(lab: Lab) -> None:
    """The process that applied it was killed before its echoes were back; so was the sampler."""
    before = lab.tree()
    argv = ["nsenter", f"--net=/run/netns/{lab.here}", str(NODE), "netem", "apply", "--node=n",
            f"--run-dir={lab.run}", "--job-id=1", "--uid=0", "--no-policy"]  # fmt: skip
    with owner() as pid:
        words = (f"--watch={pid}", "--peer=10.77.0.2", "--", "rate=2kbit,dev=v0,to=10.77.0.0/24")
        with subprocess.Popen([*argv, *words]) as applying:
            until(lambda: state_has(lab, r'"apply_s":\d'), "it is in place, and echoes are sent")
            applying.kill()
    assert lab.netem("reap").returncode == 0
    assert lab.tree() == before
    assert not list((lab.run / "netem").glob("*.json"))


def test_what_is_undone_under_a_job_is_invalid(lab: Lab) -> None:
    before = lab.tree()
    for words, by in ((("clear", "--all"), "hand"), (("reap", "--by=next job"), "next job"),
                      (("clear", "--node=n", "--job-id=1"), "hand")):  # fmt: skip
        with owner() as pid:
            assert lab.apply("rate=10mbit,dev=v0", "1", f"--watch={pid}").returncode == 0
            if by == "hand":
                assert lab.netem(*words).returncode == 0
        if by != "hand":
            assert lab.netem(*words).returncode == 0
        done = json.loads((lab.run / "netem/n.1.done.json").read_text())
        assert (done["valid"], done["undone"], done["undone_by"]) == (False, True, by)
        assert done["invalid_reason"].startswith(f"it was undone by {by}, not at the job's end")
        assert lab.tree() == before


@contextlib.contextmanager
def owner() -> Iterator[int]:
    """A process to be watched; it has ended afterwards."""
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def test_the_policys_lists_of_users_and_groups_hold_for_jobs(lab: Lab, tmp_path: Path) -> None:
    before = lab.tree()
    policy = tmp_path / "netem.conf"
    policy.write_text("enabled yes\nusers 1000\ngroups 2000\ndevices v*\nmin_rate 1mbit\n")

    def ask(spec: str, *who: str) -> tuple[int, str]:
        words = ("--node=n", "--job-id=1", "--exclusive=yes", f"--policy={policy}", *who)
        done = lab.netem("apply", *words, "--", spec)
        if done.returncode == 0:
            assert lab.finish()["undone"] is True
        return done.returncode, done.stderr

    assert ask("rate=5mbit,dev=v0", "--uid=1000") == (0, "")
    assert ask("rate=5mbit,dev=v0", "--uid=1001", "--gid=7", "--gid=2000") == (0, "")
    assert ask("rate=5mbit,dev=v0", "--uid=0") == (0, "")
    code, said = ask("rate=5mbit,dev=v0", "--uid=1001", "--gid=7")
    assert code == 4 and "user 1001 is not among the users and groups" in said
    code, said = ask("rate=5kbit,dev=v0", "--uid=0")
    assert code == 4 and "min_rate" in said, "root passes the lists and nothing else"
    code, said = ask("rate=5mbit,dev=lo", "--uid=0")
    assert code == 4 and "device lo" in said
    assert ask("rate=5mbit,dev=v0")[0] == 2, "who asks must be said"
    policy.chmod(0o666)
    code, said = ask("rate=5mbit,dev=v0", "--uid=0")
    assert code == 4 and "chmod go-w" in said
    assert lab.tree() == before


def test_the_policys_peer_is_asked_only_over_a_device_that_leads_to_it(
    lab: Lab, tmp_path: Path
) -> None:
    policy = tmp_path / "netem.conf"
    policy.write_text("enabled yes\ndevices v* lo\npeer 10.77.0.2\n")

    def document(spec: str, *words: str) -> dict[str, Any]:
        whose = ("--node=n", "--job-id=1", "--uid=0", "--exclusive=yes", f"--policy={policy}")
        done = lab.netem("apply", *whose, *words, "--", spec)
        assert done.returncode == 0, done.stderr
        assert lab.finish()["undone"] is True
        return dict(json.loads(done.stdout))

    over = document("rate=10mbit,dev=v0")
    assert over["peer"] == "10.77.0.2" and over["rtt"]["during_start"]["received"] > 0
    other = document("rate=10mbit,dev=lo")
    assert other["peer"] is None and other["rtt"]["during_start"] is None
    assert "no peer" in other["missing"]["rtt.during_start"]
    assert document("rate=10mbit,dev=lo", "--peer=127.0.0.1")["peer"] == "127.0.0.1"


def test_offloads_come_back_when_it_cannot_be_put_in_place(lab: Lab) -> None:
    tried = lab.inside("tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")
    if tried.returncode == 0:
        pytest.skip("this kernel has sch_netem")
    assert lab.inside("python3", "-c", OFFLOADS, "gro", "0").returncode == 0
    before = lab.tree()
    assert "tso 1\ngso 1\ngro 0\n" in before
    assert lab.apply("loss=1%,dev=v0").returncode == 4
    assert lab.tree() == before


def test_a_kernel_without_netem_says_so(lab: Lab) -> None:
    tried = lab.inside("tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")
    if tried.returncode == 0:
        pytest.skip("this kernel has sch_netem")
    before = lab.tree()
    done = lab.apply("delay=1ms,dev=v0")
    assert done.returncode == 4
    assert "this kernel has no sch_netem (modprobe sch_netem; on Debian:" in done.stderr
    assert os.uname().release in done.stderr
    assert lab.tree() == before


@pytest.mark.parametrize(
    ("spec", "words", "says"),
    [
        ("rate=1mbit,dev=nosuch", (), "no network device nosuch"),
        ("rate=1mbit,to=127.0.0.1", (), "loopback"),
        ("none", (), "nothing to apply"),
        ("rate=1mbit,dev=v0,direction=both", ("--cgroup=/x",), "direction"),
        ("rate=1mbit,dev=v0,rto_min=5ms", ("--cgroup=/x",), "rto_min"),
        ("rate=1mbit,dev=v0", ("--cgroup=/../x",), "/proc/PID/cgroup"),
    ],
)
def test_refused(lab: Lab, spec: str, words: tuple[str, ...], says: str) -> None:
    before = lab.tree()
    done = lab.apply(spec, "1", *words)
    assert done.returncode == 4
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert lab.tree() == before
