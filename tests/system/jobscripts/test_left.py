"""What runs in containers leave when all of them is killed with -9: at the job's end nothing, and
nothing that another run has."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.processes import each_process
from tests.waiting import wait_for

from .launcher_lab import OWN, ROOT, needs_root, processes, told

if TYPE_CHECKING:
    from tests.system.jobscripts.conftest import Study

LEFT = ROOT / "build/bin/steelyard-left"
NODE = ROOT / "build/bin/steelyard-node"
# A private network and /run, in which the firewall forwards nothing, as with docker. What
# ip-netns(8), mount(8) and iptables create permanently at their first use exists before.
PLACE = """
mount --make-rprivate / && mount -t tmpfs tmpfs /run || exit
sysctl -qw net.ipv6.conf.{all,default}.disable_ipv6=1; ip link set lo up || exit
mkdir -p /run/mount /run/systemd/nspawn/{locks,propagate} && ip netns add first && ip netns delete first && iptables -P FORWARD DROP || exit
echo ready
cat
"""
# Everything of launchers on a node except cgroups, which others have, too. Not compared are
# packets, whether a link's other end was noticed, and mounts outside of the private /run.
SEEN = """
ip -oneline link | sed 's/^[0-9]*: //; s/ state [A-Z]* / /'; ip route show table all; ip netns list; tc qdisc show
iptables-save | grep -v '^#' | sed 's/\\[[0-9:]*\\]//'; nft list ruleset
grep -E ' /run(/systemd.*|/steelyard.*)? ' /proc/self/mounts; cat /proc/sys/net/ipv4/conf/*/forwarding; find /run -path '*/locks/*' -prune -o -print
"""
# As ip(8), but at the call that STOP_AT names, by its number or its words, all of the run is killed with
# -9: before it, or after.
IP = """#!/bin/bash
exec 9>>"$COUNT" && flock 9 && echo >&9 && call=$(wc -l <"$COUNT") && exec 9>&-
[[ $STOP_AT != "$call.before" && $STOP_AT != "$1 $2.before" ]] || kill -s KILL 0
/usr/sbin/ip "$@"
code=$?
[[ $STOP_AT != "$call.after" && $STOP_AT != "$1 $2.after" ]] || kill -s KILL 0
exit "$code"
"""
SINGLE = "unshare,network=bridge,memory=64MiB"
ACROSS = "unshare,containers=2,ranks=across,network=bridge"
JOB = {"PBS_JOBID": "", "SY_SCHEDULER": "local"}


class Place:
    """Commands in there."""

    def __init__(self, pid: int) -> None:
        self.enter = ["nsenter", f"--target={pid}", "--net", "--mount", f"--wd={Path.cwd()}"]

    def __call__(self, *words: str | Path) -> str:
        done = subprocess.run(
            [*self.enter, *words], capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done
        return done.stdout

    def seen(self) -> str:
        """Return what exists."""
        return self("bash", "-c", SEEN)

    @contextlib.contextmanager
    def started(
        self, study: Study, level: str, job: str, **more: str
    ) -> Iterator[subprocess.Popen[bytes]]:
        with subprocess.Popen(
            [*self.enter, *study.command()],
            env={**study.environment, **told(level), **JOB, "PBS_JOBID": job, **more},
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as child:
            try:
                yield child
            finally:
                wait_for("all of it is dead", lambda: gone(study))

    def marks(self) -> list[str]:
        """Return the lines of the marks."""
        return self("bash", "-c", "cat /run/steelyard-containers/steelyard-* || :").splitlines()


@pytest.fixture
def place() -> Iterator[Place]:
    if shutil.which("iptables") is None or shutil.which("nft") is None:
        pytest.skip("apt install iptables nftables")
    command = ["unshare", "--net", "--mount", "bash", "-c", PLACE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"ready\n"
        yield Place(holder.pid)
        holder.communicate()


def of(study: Study) -> list[int]:
    """Processes of its runs."""
    mark = f"SY_STUDY_DIR={study.folder}".encode()
    return [pid for pid, words in each_process("environ") if mark in words.split(b"\0")]


def kill(study: Study) -> None:
    """All of it, stopped first: a shell that outlives its child by a moment cleans up."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in of(study):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def gone(study: Study) -> bool:
    """Containers end with who started them; what was just being started is killed, too."""
    kill(study)
    return not of(study)


def end_of_job(place: Place, study: Study, job: str) -> None:
    """Run the remover as a prologue or epilogue does, next to whose program it is."""
    config = study.scratch / "pbs.conf"
    config.write_text(f"record_dir={study.scratch}\nrun_dir=/run/steelyard-test\n")
    place("bash", "-c", "mkdir -p -m 700 /run/steelyard-test")
    place(NODE, "job", "end", "--job-id", job, "--node", "n", "--config", config)
    place("bash", "-c", f"grep -s 'job {job} ' /run/steelyard-test/n.log || :")
    place("rm", "-rf", "/run/steelyard-test")


def tidy(place: Place) -> None:
    """The folder of marks and its lock stay: they are there before in what is compared."""
    place(
        "bash",
        "-c",
        "mkdir -p -m 700 /run/steelyard-containers && : >/run/steelyard-containers/.lock",
    )


@pytest.mark.slow
@needs_root
@pytest.mark.parametrize(
    ("level", "calls"),
    [(SINGLE, ("1.before", "1.after", "2.after", "8.after", "link delete.after")),
     (ACROSS, ("3.before", "4.after", "netns add.after", "9.after", "link delete.before"))],
)  # fmt: skip
def test_killed_at_any_moment_nothing_is_left_after_the_job(
    study: Study, place: Place, level: str, calls: tuple[str, ...]
) -> None:
    programs = study.scratch / "programs"
    programs.mkdir()
    (programs / "ip").write_text(IP)
    (programs / "ip").chmod(stat.S_IRWXU)
    tidy(place)
    before = place.seen()
    study.body("sleep 0.25")
    for number, call in enumerate(calls):
        count = study.scratch / f"count.{number}"
        words = {"STOP_AT": call, "COUNT": str(count), "PATH": f"{programs}:{os.environ['PATH']}"}
        with place.started(study, level, f"{number}.server", **words) as child:
            child.wait(timeout=60)
        assert child.returncode == -signal.SIGKILL, call
        groups = [Path(line[7:]) for line in place.marks() if line.startswith("cgroup ")]
        assert bool(groups) == ("memory=" in level), call
        end_of_job(place, study, f"{number}.server")
        assert place.seen() == before, call
        assert not [path for path in groups if path.exists()], call


@needs_root
@pytest.mark.parametrize("level", [SINGLE, ACROSS])
def test_a_run_beside_keeps_what_is_its_own(
    study: Study, place: Place, tmp_path: Path, level: str
) -> None:
    """Killed while it measures; the other one's networks stay as they are until its end."""
    other = type(study)(tmp_path / "other")
    tidy(place)
    before = place.seen()
    other.body("sleep 88.125" + OWN)
    study.body("sleep 77.125" + OWN)
    with place.started(other, level, "1.server") as kept:
        wait_for("the other one measures", lambda: processes("88.125" + OWN))
        beside = place.seen()
        with place.started(study, level, "2.server"):
            wait_for("it measures", lambda: processes("77.125" + OWN))
            assert place.seen() != beside
        end_of_job(place, study, "2.server")
        assert place.seen() == beside
        assert processes("88.125" + OWN)
        os.kill(kept.pid, signal.SIGTERM)
        assert kept.wait(timeout=60) == 143
    wait_for("it has ended", lambda: not processes("88.125" + OWN))
    assert place.seen() == before


@needs_root
def test_of_a_container_with_an_image_nothing_is_left_either(
    study: Study, place: Place, nspawn: str
) -> None:
    level = f"{nspawn},network=bridge,memory=64MiB"
    tidy(place)
    before = place.seen()
    study.body("sleep 99.125" + OWN)
    with place.started(study, level, "3.server"):
        wait_for("it measures", lambda: processes("99.125" + OWN))
        groups = [Path(line[7:]) for line in place.marks() if line.startswith("cgroup ")]
        assert groups and all(path.exists() for path in groups)
    end_of_job(place, study, "3.server")
    assert place.seen() == before
    assert not [path for path in groups if path.exists()]


@needs_root
def test_only_what_a_mark_names_goes_and_only_when_its_run_is_over(
    place: Place, tmp_path: Path
) -> None:
    """Of a file that something else has written to, too."""
    tidy(place)
    place("bash", "-c", "ip link add syb7 type bridge; ip link add syb8 type bridge; "
          "ip link add keep0 type bridge; ip netns add other; ip link set syb8 up; "
          "ip address add 198.18.0.14/28 dev syb8; ip route add 198.18.9.0/28 via 198.18.0.1; "
          "ip route add 198.18.9.16/28 via 198.18.0.1")  # fmt: skip
    before = place.seen()
    ticks = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    spaces = f"{Path('/proc/self/ns/pid').stat().st_ino}"
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    host = Path("/proc/sys/kernel/hostname").read_text().strip()
    network = place("stat", "-L", "-c", "%i", "/proc/self/ns/net").strip()
    lives, over = (f"{os.getpid()} {start} {spaces} {boot} {host} 5" for start in (ticks, 1))
    elsewhere = f"{os.getpid()} 1 {spaces} {boot} other-{host} 5"
    own = f"network {network}\n"

    def left_after(owner: str, lines: str) -> str:
        (tmp_path / "mark").write_text(f"owner {owner}\n{lines}")
        name = f"/run/steelyard-containers/steelyard-{os.getpid()}-1"
        place("cp", tmp_path / "mark", name)
        # What another test's killed run left below /tmp goes, too.
        lines_told = place(LEFT, "sweep").splitlines(keepends=True)
        told = "".join(line for line in lines_told if "/tmp/steelyard." not in line)
        seen = place.seen()
        place("rm", "-f", name)
        assert (name in seen) == (not told and "link keep0" not in lines)
        return told if seen.replace(f"{name}\n", "") == before else f"changed: {told}"

    names = "link syb7\n"
    assert left_after(lives, own + names) == ""
    assert left_after(elsewhere, own + names) == ""
    assert (
        left_after(over, "network 4026531833\n".replace("4026531833", host_network()) + names) == ""
    )
    wrong = "phys other keep0 7 up,1,\nphys steelyard-1-1 keep0 7 up,1, ipv4/conf/../x=1\nlink keep0\nlink -x\nroute 198.18.9.0/28 via 198.18.0.2 dev syb8\nroute $(id)\nspace other\n"
    assert left_after(over, f"{own}{wrong}cgroup /sys/fs/cgroup/../../tmp/steelyard-1-1\n") == ""
    assert left_after(over, own + names + "route 198.18.9.0/28 via 198.18.0.1 dev syb8\n") == (
        f"changed: job 5 (process {os.getpid()}) was killed and left here: "
        "route 198.18.9.0/28 via 198.18.0.1 dev syb8, link syb7: removed\n"
    )
    was, now = set(before.splitlines()), set(place.seen().splitlines())
    assert now < was
    assert all("syb7" in line or "198.18.9.0/28 " in line for line in was - now)


@needs_root
def test_marks_of_an_earlier_boot_say_nothing_of_this_ones_devices(
    place: Place, tmp_path: Path
) -> None:
    """A device of that name is another one: /run may lie on a disk."""
    tidy(place)
    place("ip", "link", "add", "syb7", "type", "bridge")
    before = place.seen()
    spaces = f"{Path('/proc/self/ns/pid').stat().st_ino}"
    host = Path("/proc/sys/kernel/hostname").read_text().strip()
    network = place("stat", "-L", "-c", "%i", "/proc/self/ns/net").strip()
    owner = f"1 1 {spaces} 00000000-0000-4000-8000-000000000000 {host} 5"
    lines = "link syb7\nphys steelyard-1-1 syb7 7 up,1500,\n"
    (tmp_path / "mark").write_text(f"owner {owner}\nnetwork {network}\n{lines}")
    place("cp", tmp_path / "mark", "/run/steelyard-containers/steelyard-1-1")
    assert place(LEFT, "sweep") == ""
    assert place.seen() == before


def host_network() -> str:
    return str(Path("/proc/self/ns/net").stat().st_ino)


def test_folders_of_killed_runs_go_with_their_note(study: Study, tmp_path: Path) -> None:
    """Not of a run that lives, of another node, that a process stands in, that have no note."""
    study.body("sleep 62.625" + OWN)
    with study.start() as child:
        wait_for("it measures", lambda: processes("62.625" + OWN))
        os.kill(child.pid, signal.SIGKILL)
        kill(study)
    wait_for("all of it is dead", lambda: gone(study))
    (note,) = study.scratch.glob(".steelyard.*")
    owner = note.read_text().split()
    assert (len(owner), owner[5]) == (6, "-")
    made = {
        "boot": [*owner[:3], owner[3][::-1], *owner[4:]],
        "node": [*owner[:4], f"other-{owner[4]}", owner[5]],
        "used": owner,
        "live": [str(os.getpid()), start_of(os.getpid()), *owner[2:]],
    }
    for name, words in made.items():
        (study.scratch / f".steelyard.{name}.0.AAAAAAAA").write_text(" ".join(words) + "\n")
        (study.scratch / f"steelyard.{name}.0.AAAAAAAA/x").mkdir(parents=True)
    (study.scratch / "steelyard.bare.0.AAAAAAAA").mkdir()
    study.body("ls -A ..")
    used = study.scratch / "steelyard.used.0.AAAAAAAA/x"
    with subprocess.Popen(["cat"], cwd=used, stdin=subprocess.PIPE) as cat:
        assert study.run().returncode == 0
        cat.communicate()
    left = {path.name for path in study.scratch.iterdir()}
    kept = {f"steelyard.{name}.0.AAAAAAAA" for name in ("node", "used", "live")}
    assert left == kept | {f".{name}" for name in kept} | {"steelyard.bare.0.AAAAAAAA"}


def start_of(pid: int) -> str:
    """Clock ticks from boot: proc(5)."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def test_a_process_lives_whatever_its_name() -> None:
    """A name may hold all but a zero byte: ends of lines, too, and what stands behind it in stat."""
    script = r"""printf 'a\n) Z 1' >/proc/self/comm; . "$1"
stat=(); sy_read_process_stat $$ && echo "${stat[0]} ${stat[1]} ${stat[19]}"
sy_process_is_running "$$:${stat[19]}" && ! sy_process_is_running "$$:1" && echo lives; read -r end"""
    with subprocess.Popen(
        ["bash", "-uc", script, "-", LEFT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == f"R {os.getpid()} {start_of(child.pid)}\n"
        assert child.stdout.readline() == "lives\n"
        child.communicate("\n")


@needs_root
def test_root_removes_users_folders_with_their_rights(place: Place) -> None:
    """In a /tmp of its own: the program is taken along, for it may lie below the other."""
    program = Path("/run/steelyard-left")
    place("cp", LEFT, program)
    place(
        "bash",
        "-c",
        "mount -t tmpfs -o mode=1777 tmpfs /tmp && mkdir /tmp/target && : >/tmp/target/x",
    )
    host = Path("/proc/sys/kernel/hostname").read_text().strip()
    owner = f"1 1 1 00000000-0000-4000-8000-000000000000 {host} 7"
    place(
        "bash",
        "-c",
        f"for name in a b c; do echo '{owner}' >/tmp/.steelyard.$name.0.AAAAAAAA; done",
    )
    folders = "cd /tmp && mkdir -p steelyard.a.0.AAAAAAAA/x steelyard.b.0.AAAAAAAA/x && ln -s target steelyard.c.0.AAAAAAAA"
    place("bash", "-c", f"{folders} && ln -s /tmp/target steelyard.a.0.AAAAAAAA/y")
    # Somebody's note beside root's folder moves nothing.
    place("bash", "-c", "cd /tmp && chown -Rh 12345 .steelyard.* steelyard.a.* steelyard.c.*")
    told = place(program, "sweep").splitlines()
    assert told == ["/tmp/steelyard.a.0.AAAAAAAA of a run that was killed: removed"]
    left = place("find", "/tmp", "-mindepth", "1", "-printf", "%P\n").split()
    assert sorted(left) == sorted([
        "target", "target/x", ".steelyard.b.0.AAAAAAAA", "steelyard.b.0.AAAAAAAA",
        "steelyard.b.0.AAAAAAAA/x", ".steelyard.c.0.AAAAAAAA", "steelyard.c.0.AAAAAAAA",
    ])  # fmt: skip


@needs_root
def test_what_other_users_have_put_into_tmp_holds_no_jobs_end(place: Place) -> None:
    """A note that names a job of somebody else and a process that lives; and a process of root's
    with the user's rights, which the user stops."""
    place("bash", "-c", "mount -t tmpfs -o mode=1777 tmpfs /tmp")
    host = Path("/proc/sys/kernel/hostname").read_text().strip()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    spaces = Path("/proc/self/ns/pid").stat().st_ino
    owner = f"{os.getpid()} {start_of(os.getpid())} {spaces} {boot} {host} 7"
    note = "/tmp/.steelyard.x.0.AAAAAAAA"
    place("bash", "-c", f"echo '{owner}' >{note} && chown 12345 {note}")
    stop = "until pkill -STOP -U 12345 -f 'folders --job 7$'; do sleep 0.01; done"
    with subprocess.Popen([*place.enter, "bash", "-c", stop]) as user:
        assert place(LEFT, "sweep", "--job", "7", "--user", "12346") == ""
        assert user.poll() is None, "nothing was started with the other user's rights"
        told = place(LEFT, "sweep", "--job", "7")  # without a known owner
        user.wait()
    assert told == "folders of user 12345 in /tmp were not all looked at within 7 s\n"
    wait_for("no process is left behind", lambda: not place("bash", "-c", "pgrep -U 12345 || :"))


@needs_root
def test_the_last_process_of_a_job_is_waited_for_for_some_seconds(place: Place) -> None:
    """A killed run's shell may need a moment to end. Fifty looks without a pause took 0.1 s."""
    host = Path("/proc/sys/kernel/hostname").read_text().strip()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    spaces = Path("/proc/self/ns/pid").stat().st_ino
    place(
        "bash", "-c", "mount -t tmpfs -o mode=1777 tmpfs /tmp && mkdir /tmp/steelyard.x.0.AAAAAAAA"
    )
    with subprocess.Popen(["sleep", "2"]) as last:
        owner = f"{last.pid} {start_of(last.pid)} {spaces} {boot} {host} 7"
        place("bash", "-c", f"echo '{owner}' >/tmp/.steelyard.x.0.AAAAAAAA")
        told = place(LEFT, "sweep", "--job", "7", "--user", "0")
    assert told == "/tmp/steelyard.x.0.AAAAAAAA of a run that was killed: removed\n"
