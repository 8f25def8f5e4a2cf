"""Part of `netem.py`: the cost of applying and undoing, and kills at random moments.

It runs as a program on the machine that is measured: on this machine in a network namespace with
its own veth pair, where only a rate is requested, which every kernel supports; and in a guest.
Nothing is verified, so that no time is spent on echoes. It needs only the standard library: the
guest has no more.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Cost:
    """Wall and CPU time of commands in ms, or why there are none."""

    wall_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    missing: str = ""

    def median(self) -> tuple[float | None, float | None]:
        """Return the medians of both; None if nothing was measured."""
        if not self.wall_ms:
            return None, None
        return statistics.median(self.wall_ms), statistics.median(self.cpu_ms)


@dataclass
class Bench:
    """The request, its device, the same request for tcconfig, and the number of repeats."""

    node: str
    run_dir: str
    device: str
    spec: str
    tcset: list[str]  # the same request for tcconfig
    tcconfig: str  # the folder of its programs; "": not installed
    repeats: int
    kills: int

    def command(self, verb: str, *words: str) -> list[str]:
        return [self.node, "netem", verb, f"--run-dir={self.run_dir}", *words]

    def apply(self, *words: str) -> list[str]:
        job_options = ("--node=n", "--job-id=1", "--uid=0", "--no-policy")
        return self.command("apply", *job_options, *words, "--", self.spec)

    def finish(self) -> list[str]:
        return self.command("finish", "--node=n", "--job-id=1")

    def command_line(self) -> list[str]:
        """Return the arguments of Python that run this measurement."""
        return [str(Path(__file__).resolve()), json.dumps(asdict(self))]

    def tree(self) -> str:
        show = f"tc qdisc show; tc filter show dev {self.device}; ip -o link"
        return subprocess.run(["sh", "-c", show], capture_output=True, text=True, check=True).stdout


@contextmanager
def namespace() -> Iterator[str]:
    """Make a network namespace with a veth pair for the `with` statement; yield its name."""
    name = f"sy-bench-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        for line in ("link add v0 type veth peer name v1", "link set v0 up", "link set v1 up"):
            subprocess.run(["ip", "-n", name, *line.split()], check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False)


def on_this_machine(bench: Bench) -> dict[str, Any]:
    """Run `report` in a temporary namespace. The state is on a tmpfs, as /run is."""
    with namespace() as name:
        argv = ["nsenter", f"--net=/run/netns/{name}", sys.executable, *bench.command_line()]
        done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout))


def wait_settled(bench: Bench) -> None:
    """Wait until the link's state does not change any more."""
    before, tries = "", 20
    while (now := bench.tree()) != before and tries:
        before, tries = now, tries - 1
        time.sleep(0.2)


def timed(commands: Sequence[Sequence[str]]) -> tuple[float, float, str]:
    """Return wall and CPU ms of successive commands, and the message of the first that failed."""
    begin, cpu_s = time.monotonic(), 0.0
    for argv in commands:
        with subprocess.Popen(
            argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as process:
            message = process.stderr.read() if process.stderr else ""
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            last = message.strip().splitlines()
            return 0, 0, last[-1] if last else f"exit code {process.returncode}"
        cpu_s += usage.ru_utime + usage.ru_stime
    return (time.monotonic() - begin) * 1e3, cpu_s * 1e3, ""


def cost(bench: Bench) -> tuple[Cost, Cost]:
    """Measure apply and finish, ours and tcconfig's in turn."""
    ours = Cost()
    peer = Cost(missing="" if bench.tcconfig else "tcconfig could not be installed")
    for _ in range(bench.repeats):
        measure(ours, [bench.apply(), bench.finish()])
        if not peer.missing:
            tcset, tcdel = (f"{bench.tcconfig}/{name}" for name in ("tcset", "tcdel"))
            line = [[tcset, bench.device, *bench.tcset], [tcdel, bench.device, "--all"]]
            measure(peer, line)
    return ours, peer


def measure(into: Cost, commands: Sequence[Sequence[str]]) -> None:
    """Measure one more repeat."""
    wall_ms, cpu_ms, missing = timed(commands)
    if missing:
        into.missing = missing
        return
    into.wall_ms.append(wall_ms)
    into.cpu_ms.append(cpu_ms)


@contextmanager
def owner() -> Iterator[int]:
    """Run a process as the owner of a condition for the `with` statement; yield its id.

    After its end, the condition may be undone.
    """
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def kill_after(argv: Sequence[str], seconds: float) -> bool:
    """Kill a command after `seconds`; return whether it was still running."""
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        time.sleep(seconds)
        process.kill()
        return process.wait() == -9


def undo(bench: Bench, wall_ms: float) -> tuple[int, int]:
    """Kill apply and finish at random moments, then run `reap`.

    Returns the tries, and how often the tree differed afterwards or reap failed.
    """
    chance, done, failed = random.Random(1), 0, 0
    before = bench.tree()
    for number in range(3 * bench.kills):
        if done == bench.kills:
            break
        with owner() as pid:
            argv = bench.apply(f"--watch={pid}")
            if number % 2:
                subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
                argv = bench.finish()
            done += kill_after(argv, chance.uniform(0, wall_ms / 2e3))
        reaped = subprocess.run(bench.command("reap"), capture_output=True, check=False)
        if reaped.returncode or bench.tree() != before:
            failed += 1
            subprocess.run(bench.command("clear", "--all"), check=False)
    return done, failed


def report(bench: Bench) -> dict[str, Any]:
    """Measure everything, for JSON."""
    wait_settled(bench)
    ours, peer = cost(bench)
    wall_ms = ours.median()[0]
    tries, failures = undo(bench, wall_ms) if wall_ms else (0, 0)
    return {
        "ours": ours.median(),
        "missing": ours.missing,
        "peer": peer.median(),
        "peer_missing": peer.missing,
        "tries": tries,
        "failures": failures,
    }


if __name__ == "__main__":
    print(json.dumps(report(Bench(**json.loads(sys.argv[1])))))
