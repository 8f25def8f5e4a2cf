"""Our NAS Parallel Benchmarks against NASA's own: Mop/s of both, interleaved, and the ratio.

`make bench BENCH=npb_against_nasa NPB_BIN=FOLDER`: FOLDER contains NASA's programs (cg.A.x of 3.4,
cg.A.2 of 3.3). Environment: NPB_KERNELS, NPB_CLASSES, NPB_RANKS (lists of words, default all
kernels that both have, "S W A", "1 2 4"), NPB_ROUNDS (default 7). The last line is JSON: ours /
theirs by "cg.A.2", from the medians."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from steelyard.jobscripts import registry
from steelyard.jobscripts.npb import parse
from steelyard.wrappers.base.signals import ending_on_sigterm

ROOT = Path(__file__).resolve().parents[1]
OURS = ROOT / "build/bin"
LIMIT_S = 1200
# If there are more ranks than cores, they must not block each other; the options are the same for
# both.
OPEN_MPI = ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]


def main() -> int:
    """Print the table and the ratios; return 2 for a missing folder, 3 without any program pair."""
    folder = Path(os.environ.get("NPB_BIN", ""))
    if not os.environ.get("NPB_BIN") or not folder.is_dir():
        print(
            "usage: make bench BENCH=npb_against_nasa NPB_BIN=FOLDER, with NASA's programs",
            file=sys.stderr,
        )
        return 2
    ratios: dict[str, float] = {}
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores before anything of this runs")
    print(f"{'':10} {'ours':>10} {'theirs':>10} {'ratio':>7}   Mop/s, medians of {rounds()} rounds")
    for kernel, class_name, ranks in cases():
        theirs = nasa(folder, kernel, class_name, ranks)
        ours = OURS / f"npb-{kernel}"
        if theirs is None or not ours.is_file():
            continue
        label = f"{kernel}.{class_name}.{ranks}"
        one, other = compare([ours, "--class", class_name], [theirs], ranks)
        ratios[label] = round(one / other, 3)
        print(f"{label:10} {one:10.1f} {other:10.1f} {one / other:7.2f}", flush=True)
    print(json.dumps(ratios))
    return 0 if ratios else 3


def words(name: str, default: str) -> list[str]:
    """Return the words of an environment variable."""
    return os.environ.get(name, default).split()


def rounds() -> int:
    """Return how often each program runs."""
    return int(os.environ.get("NPB_ROUNDS", "7"))


def cases() -> list[tuple[str, str, int]]:
    """Return kernel, class and ranks of each comparison."""
    known = " ".join(map(str, registry.load("npb").parameters["kernel"].choices))
    return [
        (kernel, class_name, int(ranks))
        for kernel in words("NPB_KERNELS", known)
        for class_name in words("NPB_CLASSES", "S W A")
        for ranks in words("NPB_RANKS", "1 2 4")
        if kernel not in ("bt", "sp") or int(ranks) in (1, 4, 9, 16)
    ]


def nasa(folder: Path, kernel: str, class_name: str, ranks: int) -> Path | None:
    """Return NASA's program, by the name that 3.3 or 3.4 gives it."""
    names = (f"{kernel}.{class_name}.{ranks}", f"{kernel}.{class_name}.x")
    return next((folder / name for name in names if (folder / name).is_file()), None)


def compare(ours: list[str | Path], theirs: list[str | Path], ranks: int) -> tuple[float, float]:
    """Return both medians; the first of a pair alternates, so that drift affects both equally."""
    figures: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds()):
        order = (0, 1) if number % 2 == 0 else (1, 0)
        for which in order:
            figures[which].append(mops((ours, theirs)[which], ranks))
    return statistics.median(figures[0]), statistics.median(figures[1])


def mops(command: list[str | Path], ranks: int) -> float:
    """Run a program, which must be verified, and return its Mop/s."""
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                ["mpirun", *root, *OPEN_MPI, "-np", str(ranks), *command],
                cwd=folder, capture_output=True, text=True, check=False, timeout=LIMIT_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise SystemExit(
                f"{command[0]}: not done in {LIMIT_S} s on {ranks} ranks: take a smaller class "
                "(NPB_CLASSES), or wait until nothing else runs here"
            ) from None
    block = parse.read_block(str(command[0]), done.stdout)
    if block.verification != "SUCCESSFUL":
        raise SystemExit(f"{command[0]}: verification {block.verification}")
    return block.mops


if __name__ == "__main__":
    with ending_on_sigterm():
        sys.exit(main())
