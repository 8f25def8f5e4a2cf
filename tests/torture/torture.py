"""Every call that may fail made to fail, once per run: torture.py [OPTIONS] PROGRAM…

A program may fail its checks then. It must not die of a signal, leak, corrupt memory, or hang.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import mmap
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pbs_job
import programs

# tests/torture/fail_nth.h
DEPTH, PLACES, PATHS, PATH_BYTES, NAME_BYTES = 24, 16384, 8, 64, 32
HEAD = struct.Struct(f"=QQQ{NAME_BYTES}s{DEPTH}Q{PATHS * PATH_BYTES}s")
SIZE = HEAD.size + 16 * PLACES

LEFT_S = 10.0  # the child of a killed sampler notices its end

OPTIONS = (
    "detect_leaks=1:exitcode=99:handle_abort=1:allocator_may_return_null=1:print_suppressions=0"
)


@dataclass
class Outcome:
    """The result of one run."""

    code: int | None  # None: it hung
    calls: int
    failed: str  # the function that was made to fail; "": none
    trace: list[int]
    places: list[int]
    reports: str
    output: str
    wrong: str = ""
    seconds: float = 0.0

    @property
    def fault(self) -> str:
        if self.code is None:
            return "hung"
        if self.code < 0:
            return f"died of {signal.Signals(-self.code).name}"
        return "a sanitizer's report" if self.reports or self.code == 99 else self.wrong


@dataclass
class Case:
    """A program to torture; `judge` checks the files in its folder."""

    name: str
    argv: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    judge: Callable[[Path, int], str] | None = None
    prepare: Callable[[Path], None] | None = None
    calls: int = 0
    places: list[int] = field(default_factory=list)
    limit_s: float = 60.0
    program: str = ""  # the program whose calls fail, if it is not the started one


def run(case: Case, fail_at: int) -> Outcome:
    """Run a case once, with one call failing; 0: none."""
    with tempfile.TemporaryDirectory(prefix="steelyard-torture-") as name:
        folder = Path(name)
        if case.prepare:
            case.prepare(folder)
        with (folder / "nth").open("w+b") as file:
            file.truncate(SIZE)
            shared = mmap.mmap(file.fileno(), SIZE)
        struct.pack_into("=Q", shared, 8, fail_at)
        began = time.monotonic()
        code = started(case, folder)
        left = end_left(folder)
        outcome = read(folder, shared, code)
        outcome.seconds, outcome.wrong = time.monotonic() - began, left
        if case.judge and not outcome.fault and outcome.code is not None:
            outcome.wrong = case.judge(folder, outcome.code)
        return outcome


def started(case: Case, folder: Path) -> int | None:
    sanitizer = f"{OPTIONS}:log_path={folder}/report"
    environment = os.environ | case.environment | {
        "FAIL_NTH": str(folder / "nth"), "ASAN_OPTIONS": sanitizer,
        "UBSAN_OPTIONS": f"print_stacktrace=1:log_path={folder}/report",
        "LSAN_OPTIONS": "print_suppressions=0",
    }  # fmt: skip
    argv = [word.replace("{}", str(folder)) for word in case.argv]
    with (folder / "output").open("wb") as output, (folder / "answer").open("wb") as answer:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=answer, stderr=output,
            env=environment, start_new_session=True,
        )  # fmt: skip
        try:
            return process.wait(case.limit_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def end_left(folder: Path) -> str:
    """End leftover processes of a run; one that had enough time to end is a fault."""
    until = time.monotonic() + LEFT_S
    while (left := of_run(folder)) and time.monotonic() < until:
        time.sleep(0.05)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return f"left running: {', '.join(left.values())}" if left else ""


def of_run(folder: Path) -> dict[int, str]:
    """Return a run's command lines by process id, found by the file that they share with us."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"FAIL_NTH={folder}/".encode() in (path / "environ").read_bytes():
                found[int(path.name)] = (
                    (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                )
    return found


def read(folder: Path, shared: mmap.mmap, code: int | None) -> Outcome:
    calls, _, failed, function, *rest = HEAD.unpack_from(shared)
    trace, made = rest[:DEPTH], rest[DEPTH]
    firsts = struct.unpack_from(f"={PLACES}Q", shared, HEAD.size + 8 * PLACES)
    for at in range(0, PATHS * PATH_BYTES, PATH_BYTES):
        if path := made[at : at + PATH_BYTES].rstrip(b"\0").decode():
            shutil.rmtree(path, ignore_errors=True)
    return Outcome(
        code=code,
        calls=calls,
        failed=function.rstrip(b"\0").decode() if failed else "",
        trace=[at for at in trace if at],
        places=sorted(first for first in firsts if first),
        reports="\n".join(p.read_text(errors="replace") for p in sorted(folder.glob("report.*"))),
        output="".join((folder / n).read_text(errors="replace") for n in ("answer", "output")),
    )


def count(case: Case) -> str:
    """Run a case undisturbed; return what is wrong, or ""."""
    outcome = run(case, 0)
    case.calls, case.places = outcome.calls, outcome.places
    case.limit_s = max(90.0, 30 * outcome.seconds)  # tests wait a minute for missing events
    if outcome.fault or (outcome.code and not case.judge):
        return f"{outcome.fault or outcome.code}\n{outcome.reports}\n{outcome.output[-3000:]}"
    return ""


def where(case: Case, outcome: Outcome) -> str:
    """Return the trace of the call that was made to fail, as text."""
    program = case.program or case.argv[0]
    lines = subprocess.run(
        ["addr2line", "-fsp", "-e", program, *(hex(at - 1) for at in outcome.trace)],
        capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip
    return f"{outcome.failed} in " + " < ".join(lines.splitlines()[:5])


def chosen(cases: list[Case], every: bool, seed: int) -> Iterator[tuple[Case, int]]:
    """Yield calls to fail: the first from each call site, or every one; programs in turn."""
    mixed = random.Random(seed)
    queues = []
    for case in cases:
        calls = list(range(1, case.calls + 1)) if every else list(case.places)
        mixed.shuffle(calls)
        queues.append((case, calls))
    while queues:
        queues = [(case, calls) for case, calls in queues if calls]
        for case, calls in queues:
            yield case, calls.pop()


def torture(cases: list[Case], options: argparse.Namespace) -> int:
    """Return the number of faults."""
    end = time.monotonic() + options.seconds
    faults: dict[str, int] = {}
    done = {case.name: 0 for case in cases}
    todo = list(chosen(cases, options.all, options.seed))
    print(f"torture: {len(todo)} calls to make fail", flush=True)

    def one(case: Case, number: int) -> tuple[Case, int, Outcome | None]:
        return case, number, run(case, number) if time.monotonic() < end else None

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for case, number, outcome in pool.map(lambda pair: one(*pair), todo):
            if outcome is None:
                continue
            done[case.name] += 1
            if outcome.fault:
                place = where(case, outcome)
                faults[place] = faults.get(place, 0) + 1
                if faults[place] == 1:
                    tell(case, number, outcome, place)
    for case in cases:
        wanted = case.calls if options.all else len(case.places)
        print(f"{case.name}: {done[case.name]} of {wanted} made to fail, {case.calls} calls in all")
    missed = len(todo) - sum(done.values())
    print(
        f"torture: {sum(done.values())} runs, {missed} left out for want of time, {len(faults)} faults"
    )
    return len(faults)


def tell(case: Case, number: int, outcome: Outcome, place: str) -> None:
    print(f"not ok - {case.name}: {outcome.fault} when call {number} failed: {place}")
    print(f"# again: {Path(__file__).name} --at {number} --only {case.name}")
    for line in (outcome.reports[:4000] or outcome.output[-600:]).splitlines():
        print(f"#   {line}")
    sys.stdout.flush()


def again(case: Case, number: int) -> int:
    outcome = run(case, number)
    print(outcome.output, outcome.reports, sep="\n")
    print(f"code {outcome.code}; {where(case, outcome)}; {outcome.fault or 'no fault'}")
    return int(bool(outcome.fault))


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("programs", nargs="*", help="test programs")
    parser.add_argument("--plugin", default="", help="handed to each of them")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no run after that")
    parser.add_argument("--all", action="store_true", help="every call, not each place once")
    parser.add_argument("--only", help="the program of this name")
    parser.add_argument("--at", type=int, help="make this call fail, and show all of it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    return parser.parse_args(arguments)


def found(options: argparse.Namespace) -> Iterator[Case]:
    """Yield the test programs, and the commands of steelyard-node."""
    for program in options.programs:
        if Path(program).name != "steelyard-node":
            yield Case(Path(program).name, [program, options.plugin], {"SY_ROUNDS": "20"})
            continue
        for name, argv, judge, prepare in programs.questions(program):
            yield Case(name, argv, judge=judge, prepare=prepare)
        name, argv, judge = pbs_job.question(program)
        yield Case(name, argv, judge=judge, prepare=pbs_job.with_folders, program=program)


def main(arguments: list[str]) -> int:
    options = parsed(arguments)
    cases = [case for case in found(options) if options.only in (None, case.name)]
    if options.at is not None:
        for case in cases:
            count(case)
        return max(again(case, options.at) for case in cases)
    for case in cases:
        if wrong := count(case) and count(case):  # repeated, since some wait for a limited time
            print(f"not ok - {case.name}, undisturbed: {wrong}")
            return 1
    if not any(case.calls for case in cases):
        print("not ok - no call of ours was counted")
        return 1
    return int(torture(cases, options) > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
