"""The timed tasks of one client: the analysis, a plain copy, reading every branch, a command.

Each returns a dictionary: `begin_s`, `end_s` (CLOCK_MONOTONIC, the same for all processes of a
node), `cpu_s`, `events`, `found` (which the parser compares with the expected values), and the
Tally.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import numpy as np

from steelyard.jobscripts import placeholders
from steelyard.jobscripts.hep import input_faults, input_files
from steelyard.jobscripts.hep.counting_reader import ReadError, Tally, source_class
from steelyard.jobscripts.hep.events import LEAST_PT, MOST_ETA, Pairs
from steelyard.jobscripts.hep.tree_writer import TREE, Digests

NEEDED = ["Muon_pt", "Muon_eta", "Muon_phi", "Muon_charge"]
Task = Mapping[str, Any]  # where, asked (the parameters), skim (this client's output file)


class Clock:
    """Measures wall and CPU time in s of this process or of its children; it can be paused."""

    def __init__(self, who: int = resource.RUSAGE_SELF) -> None:
        self.who = who
        self.cpu_s = -self._cpu()
        self.begin_s = time.monotonic()
        self.stopped_s = 0.0

    def _cpu(self) -> float:
        used = resource.getrusage(self.who)
        return used.ru_utime + used.ru_stime

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Pause the clock in the `with` statement."""
        begin, cpu = time.monotonic(), self._cpu()
        try:
            yield
        finally:
            self.stopped_s += time.monotonic() - begin
            self.cpu_s -= self._cpu() - cpu

    def end(self) -> dict[str, float]:
        """Return the times; pauses are subtracted from the end."""
        end = time.monotonic() - self.stopped_s
        return {"begin_s": self.begin_s, "end_s": end, "cpu_s": self.cpu_s + self._cpu()}


def open_tree(task: Task, tally: Tally, needed: Sequence[str] = ()) -> tuple[Any, Any]:
    """Return uproot's file and tree, without caches of earlier executions."""
    import uproot

    where = str(task["where"])
    handler = source_class(where, tally, task["asked"]["requests"] == "vector")
    with input_faults.name_fault(where, f"expected a ROOT file with a tree '{TREE}'"):
        file = uproot.open(where, handler=handler, object_cache=None, array_cache=None)
    return file, input_faults.tree_of(file, where, TREE, needed)


def steps(task: Task, tree: Any, names: list[str], library: str) -> Iterator[Any]:
    """Yield the arrays of each step's events, fetched `read_ahead` steps in advance."""
    where = str(task["where"])
    step, ahead = int(task["asked"]["step"]), int(task["asked"]["read_ahead"])
    for start in range(0, tree.num_entries, step):
        if ahead:
            fetch(tree, names, start + step, start + step * (1 + ahead))
        stop = min(start + step, tree.num_entries)
        yield input_faults.arrays_of(tree, where, names, start, stop, library)


def fetch(tree: Any, names: list[str], start: int, stop: int) -> None:
    """Begin to read the baskets of these events."""
    ranges = [
        (int(where[0]), int(where[1]))
        for name in names
        for _, where in tree[name].entries_to_ranges_or_baskets(start, stop)
        if isinstance(where, tuple)
    ]
    tree.file.source.ahead.fetch(ranges)


def analyse(task: Task) -> dict[str, Any]:
    """Select events with two good muons of opposite charge, and write their masses to a file."""
    import uproot

    tally, pairs, clock = Tally(), Pairs(), Clock()
    file, tree = open_tree(task, tally, NEEDED)
    names = NEEDED if task["asked"]["columns"] == "needed" else tree.keys()
    with file, uproot.recreate(task["skim"], compression=uproot.ZLIB(1)) as skim:
        columns = ("mass", "pt1", "pt2", "eta1", "eta2")
        output = skim.mktree("Pairs", dict.fromkeys(columns, np.dtype("f4")))
        for arrays in steps(task, tree, names, "ak"):
            output.extend(select(arrays, pairs))
        events = tree.num_entries
    times = clock.end()
    with uproot.open(task["skim"]) as skim:
        written = skim["Pairs"].num_entries
    Path(task["skim"]).unlink()
    found = {**pairs.result(), "written": written}
    return {**times, **asdict(tally), "events": events, "found": found}


def select(arrays: Any, pairs: Pairs) -> dict[str, Any]:
    """Select and transform the events of one step; return the columns to write."""
    import awkward as ak

    good = (arrays["Muon_pt"] > LEAST_PT) & (abs(arrays["Muon_eta"]) < MOST_ETA)
    muons = {name: arrays[f"Muon_{name}"][good] for name in ("pt", "eta", "phi", "charge")}
    two = ak.num(muons["pt"]) >= 2
    first, second = ({n: c[two][:, i] for n, c in muons.items()} for i in (0, 1))
    opposite = first["charge"] != second["charge"]
    pt, eta, phi = (
        tuple(ak.to_numpy(muon[name][opposite]) for muon in (first, second))
        for name in ("pt", "eta", "phi")
    )
    mass = pairs.add({"pt": pt, "eta": eta, "phi": phi})
    rows = {"mass": mass, "pt1": pt[0], "pt2": pt[1], "eta1": eta[0], "eta2": eta[1]}
    return {name: column.astype("f4") for name, column in rows.items()}


def copy(task: Task) -> dict[str, Any]:
    """Copy the file with xrdcp; the check of its content is not timed."""
    command = ["xrdcp", "--silent", "--force", str(task["where"]), str(task["skim"])]
    clock = Clock(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    times = clock.end()
    if done.returncode != 0:
        raise ReadError(f"xrdcp ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    target = Path(task["skim"])
    found = {"sha256": input_files.sha256(target)}
    size = target.stat().st_size
    target.unlink()
    return {**times, "bytes_read": size, "found": found}


def read_all(task: Task) -> dict[str, Any]:
    """Read every branch into arrays; the digest of the values is not timed."""
    tally, digests, clock = Tally(), Digests(), Clock()
    file, tree = open_tree(task, tally)
    jagged = task["asked"]["structure"] == "jagged"
    with file:
        names = tree.keys()
        for arrays in steps(task, tree, names, "ak" if jagged else "np"):
            with clock.stopped():
                for name in names:
                    digests.add(name, flat(arrays[name]))
        events = tree.num_entries
    found = {"content_sha256": digests.result()}
    return {**clock.end(), **asdict(tally), "events": events, "found": found}


def executed(arguments: list[str], folder: Path, out: IO[bytes], errors: IO[bytes]) -> int:
    """Run a program and return its exit code.

    If this process is asked to end, the program and its children are killed.
    """
    process = subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=errors,
        cwd=folder,
        start_new_session=True,
    )
    try:
        return process.wait()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


def command(task: Task) -> dict[str, Any]:
    """Run the user's command with the file's address; what it reads is unknown."""
    folder, number = Path(tempfile.mkdtemp(dir=Path(task["skim"]).parent)), str(task["number"])
    log = Path(os.environ["SY_ATTEMPT_DIR"])
    log_out, log_err = log / f"command.{number}.out", log / f"command.{number}.err"
    fields = {"url": str(task["where"]), "client": number, "output": str(task["skim"])}
    line = placeholders.filled_command(str(task["asked"]["command"]), fields)
    with log_out.open("ab") as out, log_err.open("ab") as errors:
        clock = Clock(resource.RUSAGE_CHILDREN)
        code = executed(["bash", "-c", line], folder, out, errors)
        times = clock.end()
    shutil.rmtree(folder)
    Path(task["skim"]).unlink(missing_ok=True)
    if code != 0:
        lines = log_err.read_text(encoding="utf-8", errors="replace").split("\n")
        last = next((fields for fields in reversed(lines) if fields.strip()), "without a word")
        raise ReadError(f"the command ended with {code}: {last[:300]}")
    return {**times, "found": {}}


def flat(values: Any) -> Any:
    """Return the values of a column in one array."""
    import awkward as ak

    return values if isinstance(values, np.ndarray) else ak.to_numpy(ak.flatten(values, axis=None))


WORK = {
    "analysis": analyse,
    "local": analyse,
    "xrdcp": copy,
    "read": read_all,
    "command": command,
}


def prepare(mode: str) -> None:
    """Import the task's modules, so that this is not timed."""
    if mode not in ("xrdcp", "command"):
        import awkward
        import uproot

        del awkward, uproot
