"""Study databases for tests: seeded, no cluster needed.

`python -m tests.unit.judging.synthetic FOLDER` writes demo.study, demo-energy.study,
thesis-filesystem.study, thesis-hpc.study and large.study there, to look at their reports.
"""

from __future__ import annotations

import csv
import importlib.resources
import math
import random
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from .study_maker import StudyMaker

DATA = Path(str(importlib.resources.files("steelyard.analysis.papers"))) / "jungels2012"
TESTS = {"large_file_copy": 0.8, "small_file_copy": 0.12, "small_file_write": 0.1}


def demo(name: str = "demo", energy: bool = False, repeat: int = 5) -> StudyMaker:
    """Make HPL and the three file-system tests with 1 and 2 clients, like `make demo`.

    One run failed, one is an outlier; large file copies slow down with 2 clients, HPL does not.
    """
    maker = StudyMaker(name, {"clients": [1, 2]}, {"clients": 1})
    chance = random.Random(7)
    for number in range(1, repeat + 1):
        for clients in chance.sample([1, 2], 2):
            for test, seconds in TESTS.items():
                demo_filesystem(maker, chance, test, seconds, clients, number, energy)
            demo_hpl(maker, chance, clients, number, energy)
    return maker


def demo_filesystem(
    maker: StudyMaker,
    chance: random.Random,
    test: str,
    seconds: float,
    clients: int,
    number: int,
    energy: bool,
) -> None:
    node = f"n{chance.randint(1, 4)}"
    failed = test == "small_file_copy" and clients == 2 and number == 3
    run = maker.run(
        "filesystem",
        {"test": test},
        {"clients": clients},
        number,
        nodes=(node,),
        elapsed_s=seconds * 20,
        state="failed" if failed else "completed",
        reason="output of client 1: line 3 is cut short" if failed else None,
    )
    if failed:
        maker.gap("output", "client 1: line 3 is cut short", run)
    else:
        slower = 1.35 if clients == 2 and test == "large_file_copy" else 1.0
        level = seconds * slower * chance.gauss(1, 0.02)
        if test == "small_file_write" and clients == 1 and number == 4:
            level *= 1.6
        for client in range(1, clients + 1):
            for iteration in range(1, 6):
                value = level * chance.gauss(1, 0.01)
                maker.result(run, "seconds", value, "s", client=client, iteration=iteration)
                rate = 268_435_456 / value
                maker.result(
                    run, "throughput", rate, "bytes_per_s", "higher", False, client, iteration
                )
    demo_record(maker, chance, run, node, seconds * 20, energy)


def demo_hpl(
    maker: StudyMaker, chance: random.Random, clients: int, number: int, energy: bool
) -> None:
    node = f"n{chance.randint(1, 4)}"
    seconds = chance.gauss(21, 0.2)
    run = maker.run(
        "hpl", {"N": 4000}, {"clients": clients}, number, nodes=(node,), elapsed_s=seconds
    )
    maker.result(run, "gflops", chance.gauss(38.2, 0.3), "Gflop/s", "higher")
    demo_record(maker, chance, run, node, seconds, energy)


def demo_record(
    maker: StudyMaker,
    chance: random.Random,
    run: tuple[str, str],
    node: str,
    elapsed_s: float,
    energy: bool,
) -> None:
    virtual = node in ("n3", "n4")
    maker.record(
        run,
        node,
        elapsed_s,
        energy_j=elapsed_s * chance.gauss(96, 1) if energy else None,
        node_type="virtual" if virtual else "physical",
        vm="kvm" if virtual else "none",
    )
    maker.samples(run, node, elapsed_s, watts=110 if energy else None)


def scaled(kind: str = "strong", repeat: int = 6, name: str = "scaled") -> StudyMaker:
    """Make runs on 1 to 8 nodes, at 200 W per node; all runs of CG on 16 failed.

    CG in seconds follows Amdahl's law with a serial share of 5 % (weak: 20 % slower at each
    doubling), EP in Mop/s is nearly linear.
    """
    maker = StudyMaker(name, {"nodes": [1, 2, 4, 8, 16]}, {"nodes": 1})
    maker.scaling = {"kind": kind, "over": ["nodes"]}
    chance = random.Random(6)
    for number in range(1, repeat + 1):
        for nodes in chance.sample([1, 2, 4, 8, 16], 5):
            seconds = (
                100 * 1.2 ** math.log2(nodes)
                if kind == "weak"
                else 100 * (1 + 0.05 * (nodes - 1)) / nodes
            )
            names = [f"n{place}" for place in range(1, nodes + 1)]
            scaled_run(maker, chance, "cg", seconds, number, names)
            work = nodes if kind == "weak" else 1
            scaled_run(maker, chance, "ep", 100 * work / nodes**0.98, number, names, work)
    return maker


def scaled_run(
    maker: StudyMaker,
    chance: random.Random,
    kernel: str,
    seconds: float,
    number: int,
    nodes: list[str],
    work: int = 1,
) -> None:
    """Add one run; its joules and seconds vary together."""
    seconds *= chance.gauss(1, 0.02)
    failed = kernel == "cg" and len(nodes) == 16
    run = maker.run(
        "npb",
        {"kernel": kernel},
        {"nodes": len(nodes)},
        number,
        nodes=nodes,
        elapsed_s=seconds + 1,
        state="failed" if failed else "completed",
        reason="out of memory" if failed else None,
    )
    if failed:
        return
    if kernel == "cg":
        maker.result(run, "seconds", seconds, "s")
    else:
        maker.result(run, "mops", 5000 * work / seconds, "Mop/s", "higher")
    for node in nodes:
        maker.record(run, node, seconds + 1, energy_j=200 * seconds * chance.gauss(1, 0.01))


def thesis_rows(file: str) -> Iterator[dict[str, str]]:
    with (DATA / file).open(newline="", encoding="utf-8") as lines:
        yield from csv.DictReader(lines)


def thesis_filesystem() -> StudyMaker:
    """Make runs of which iteration i of all nodes of a series is run i.

    Factors are node types, file systems, concurrent nodes.
    """
    runs: dict[tuple[str, ...], list[tuple[int, float]]] = defaultdict(list)
    for row in thesis_rows("filesystem.csv"):
        names = ("test", "node_type", "filesystem", "concurrent_nodes", "iteration")
        key = tuple(row[name] for name in names)
        runs[key].append((int(row["node_index"]), float(row["seconds"])))
    factors = {
        "node_type": ["physical", "virtual"],
        "filesystem": ["Lustre", "NFS", "PVFS"],
        "concurrent_nodes": ["1", "2", "3", "4"],
    }
    maker = StudyMaker("thesis-filesystem", factors, {"node_type": "physical"})
    for (test, node_type, filesystem, nodes, iteration), values in runs.items():
        condition = {
            "node_type": node_type,
            "filesystem": filesystem,
            "concurrent_nodes": nodes,
        }
        run = maker.run(
            "filesystem",
            {"test": test},
            condition,
            int(iteration),
            elapsed_s=max(seconds for _, seconds in values),
            nodes=[f"oscarnode{index}" for index, _ in values],
        )
        for client, seconds in values:
            maker.result(run, "seconds", seconds, "s", client=client)
    return maker


def thesis_hpc() -> StudyMaker:
    """Make NPB and XHPL, one iteration per run."""
    maker = StudyMaker(
        "thesis-hpc", {"node_type": ["physical", "virtual"]}, {"node_type": "physical"}
    )
    for row in thesis_rows("hpc.csv"):
        kernel = {"kernel": row["benchmark"]}
        run = maker.run("hpc", kernel, {"node_type": row["node_type"]}, int(row["iteration"]))
        maker.result(run, "total", float(row["total"]), row["unit"], "higher")
    return maker


def large(runs: int = 10_000, conditions: int = 100) -> StudyMaker:
    """Make as many runs as in the budget of the report."""
    levels = [f"delay={5 * index}ms" if index else "none" for index in range(conditions)]
    maker = StudyMaker("large", {"network": levels}, {"network": "none"})
    chance = random.Random(11)
    for number in range(1, runs // conditions + 1):
        for index, level in enumerate(levels):
            seconds = (10 + index / 10) * chance.gauss(1, 0.03)
            node = f"n{chance.randint(1, 40):02}"
            run = maker.run(
                "xrootd", {}, {"network": level}, number, elapsed_s=seconds, nodes=(node,)
            )
            maker.result(run, "seconds", seconds * 0.9, "s")
            sampled = number == 50
            energy = seconds * chance.gauss(90, 2)
            samples = int(seconds) + 1 if sampled else 2
            maker.record(run, node, seconds, energy_j=energy, samples=samples)
            if sampled:
                maker.samples(run, node, seconds, watts=100)
    return maker


def main(folder: Path) -> None:
    """Write all studies, for manual review."""
    small = (demo(), demo("demo-energy", True), scaled(), scaled("weak", name="weak"))
    for maker in (*small, thesis_filesystem(), thesis_hpc(), large()):
        sys.stdout.write(f"{maker.write(folder)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
