"""Small handmade databases in the form of the four papers' studies."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

from tests.unit.summary.study_maker import StudyMaker

from steelyard.analysis.papers.report import ComparisonReport, build_comparison_report
from steelyard.analysis.summary.summary import summarize

# Five values with mean 1 and a sample standard deviation of 0.01 · √2.5 / 1 = 0.0158.
SPREAD = (0.98, 0.99, 1.0, 1.01, 1.02)
BARE, INSIDE = "bare", "podman:localhost/steelyard-mpi:1"
SECONDS = {  # of q3: (bare, in a container)
    "cg": (10.0, 18.0), "ep": (10.0, 10.0), "ft": (10.0, 10.2), "is": (10.0, 10.0), "lu": (10.0, 15.0),
}  # fmt: skip


def beside(maker: StudyMaker | Sequence[StudyMaker], paper: str, folder: Path) -> ComparisonReport:
    """Compare one or several studies with a paper."""
    makers = [maker] if isinstance(maker, StudyMaker) else maker
    return build_comparison_report([summarize(one.write(folder)) for one in makers], paper)


def outcomes(report: ComparisonReport) -> dict[str, tuple[str, str]]:
    """Return verdict and reason by a claim's text."""
    return {one.claim.words: (one.outcome, one.reason) for one in report.verdicts}


def ruiz_q3(
    spread: Sequence[float] = SPREAD, kernels: Sequence[str] = tuple(SECONDS)
) -> StudyMaker:
    """Make Ruiz' question 3: CG +80 %, LU +50 %, FT +2 %, EP and IS equal; with 2 ms CG +20 %."""
    usual, short = "rto_min=200ms", "rto_min=2ms"
    factors = {"launcher": [BARE, INSIDE], "network": [usual, short]}
    maker = StudyMaker("q3", factors, {"launcher": BARE, "network": usual})
    for kernel, (number, share) in product(kernels, enumerate(spread, start=1)):
        for place, launcher in enumerate(factors["launcher"]):
            for network in factors["network"]:
                seconds = SECONDS[kernel][place]
                if kernel == "cg" and place and network == short:
                    seconds = 12.0
                npb(maker, kernel, launcher, network, number, seconds * share, ("n1", "n2"))
    return maker


def ruiz_lossy() -> StudyMaker:
    """Make a study with 1 % of packets lost.

    CG takes 10 s bare and 15 s in a container, with 2 ms 5 and 6 s; FT takes 10 % more in a
    container.
    """
    networks = [f"loss=1%,rto_min={least}" for least in ("200ms", "2ms")]
    maker = StudyMaker(
        "lossy", {"launcher": [BARE, INSIDE], "network": networks}, {"launcher": BARE}
    )
    times = {"cg": ((10.0, 15.0), (5.0, 6.0)), "ft": ((10.0, 11.0), (10.0, 11.0))}
    for (kernel, found), (number, share) in product(times.items(), enumerate(SPREAD, start=1)):
        for network, both in zip(networks, found, strict=True):
            for launcher, seconds in zip((BARE, INSIDE), both, strict=True):
                npb(maker, kernel, launcher, network, number, seconds * share, ("n1", "n2"))
    return maker


def npb(
    maker: StudyMaker,
    kernel: str,
    launcher: str,
    network: str,
    number: int,
    seconds: float,
    nodes: Sequence[str],
    shares: tuple[float, float, float] = (0.7, 0.2, 0.1),
) -> None:
    """Add a run of class S on 16 ranks, with its profile."""
    run = maker.run(
        "npb",
        {"kernel": kernel, "class": "S", "ranks": 16, "profile": True},
        {"launcher": launcher, "network": network},
        number,
        elapsed_s=seconds,
        nodes=nodes,
    )
    maker.result(run, "mops", 1000 / seconds, "Mop/s", "higher")
    maker.result(run, "seconds", seconds, "s", primary=False)
    for part, share in zip(("compute", "communication", "init"), shares, strict=True):
        maker.result(run, f"{part}_share", share, "1", None, primary=False)
        maker.result(run, f"{part}_s", share * seconds, "s", None, primary=False)


def ruiz_q2() -> StudyMaker:
    """Make a study of one machine, bare and in containers: 10 % slower in 8, 20 % in 2.

    The paper has 10 %, too.
    """
    few, many = (f"{INSIDE},network=bridge,containers={count},ranks=across" for count in (2, 8))
    factors = {"launcher": [BARE, few, many], "network": ["none"]}
    maker = StudyMaker("q2", factors, {"launcher": BARE})
    for kernel, (number, share) in product(("cg", "mg"), enumerate(SPREAD, start=1)):
        npb(maker, kernel, BARE, "none", number, 10 * share, ("n1",), (0.7, 0.25, 0.05))
        npb(maker, kernel, few, "none", number, 12 * share, ("n1",), (0.5, 0.4, 0.1))
        npb(maker, kernel, many, "none", number, 11 * share, ("n1",), (0.6, 0.3, 0.1))
    return maker


def ruiz_multinode() -> StudyMaker:
    """Make the same on eight machines without containers: 6 s of 20 are communication."""
    maker = StudyMaker("machines", {"launcher": [BARE], "network": ["none"]}, {"launcher": BARE})
    nodes = tuple(f"n{number}" for number in range(1, 9))
    for kernel, (number, share) in product(("cg", "mg"), enumerate(SPREAD, start=1)):
        npb(maker, kernel, BARE, "none", number, 20 * share, nodes, (0.65, 0.3, 0.05))
    return maker


def ruiz_side_by_side() -> StudyMaker:
    """Make a study of eight machines with 2 and 8 containers each.

    MG loses 15 and 60 %, EP 4 and 30 %. With equal numbers MG always loses more than EP, and with 2
    less than EP with 8.
    """
    levels = [BARE, *(f"{INSIDE},containers={count},ranks=across" for count in (2, 8))]
    maker = StudyMaker("side", {"launcher": levels, "network": ["none"]}, {"launcher": BARE})
    nodes = tuple(f"n{number}" for number in range(1, 9))
    others = dict.fromkeys(("mg", "lu", "ft"), (1.0, 1.15, 1.6))
    lost = {**others, "ep": (1.0, 1.04, 1.3)}
    for (kernel, times), (number, share) in product(lost.items(), enumerate(SPREAD, start=1)):
        for launcher, more in zip(levels, times, strict=True):
            npb(maker, kernel, launcher, "none", number, 10 * more * share, nodes)
    return maker


def kommeri_local() -> StudyMaker:
    """Make a study at 100 Mbit/s: 2 s + 40 ms per ms of round trip, 10 W; a run of 75 ms is
    invalid.
    """
    networks = [f"rate=100mbit,delay={us}us" if us else "rate=100mbit" for us in (0, 12500, 37500)]
    maker = StudyMaker("local", {"network": networks}, {"network": networks[0]})
    for (network, ms), (number, share) in product(
        zip(networks, (0, 25, 75), strict=True), enumerate(SPREAD, start=1)
    ):
        seconds = (2 + 0.04 * ms) * share
        invalid = ms == 75 and number == 5
        run = maker.run(
            "xrootd", {"mode": "analysis", "clients": 1}, {"network": network}, number,
            elapsed_s=seconds, nodes=("v1", "v2"),
            **({"valid": False, "invalid_reason": "17 packets dropped"} if invalid else {}),
        )  # fmt: skip
        maker.result(run, "seconds", 1000.0 if invalid else seconds, "s")
        for node in ("v1", "v2"):
            maker.record(run, node, seconds, energy_j=5 * seconds)
    return maker


def jungels_hpc() -> StudyMaker:
    """Make a study with virtual nodes: CG 30 % less, BT 10 % more."""
    maker = StudyMaker("hpc", {"node_type": ["physical", "virtual"]}, {"node_type": "physical"})
    for (kernel, virtual), (number, share) in product(
        (("cg", 0.7), ("bt", 1.1)), enumerate(SPREAD, start=1)
    ):
        for node_type, level in (("physical", 1.0), ("virtual", virtual)):
            run = maker.run(
                "npb",
                {"kernel": kernel, "class": "S", "ranks": 4},
                {"node_type": node_type},
                number,
            )
            maker.result(run, "mops", 100 * level * share, "Mop/s", "higher")
    return maker


def jungels_files(process: str) -> StudyMaker:
    """Make a study of four clients: Lustre takes 11 s, NFS 36 s, PVFS 40 s.

    Virtual nodes take 10 % more, from PVFS 10 % less.
    """
    places = {"/lustre/s": (11.0, 1.1), "/nfs/s": (36.0, 1.1), "/pvfs/s": (40.0, 0.9)}
    types = ["physical", "virtual"]
    factors = {"node_type": types, "clients": [4], "directory": list(places)}
    maker = StudyMaker(f"files-{process}", factors, {"node_type": "physical"})
    metric = "seconds" if process == "one" else "seconds_by_processes"
    tests = ("large_file_copy", "small_file_write")
    for test, directory, node_type, (number, share) in product(
        tests, places, types, enumerate(SPREAD, start=1)
    ):
        seconds, virtual = places[directory]
        run = maker.run(
            "filesystem", {"test": test, "process": process, "size": 490_000_000},
            {"node_type": node_type, "clients": 4, "directory": directory}, number,
            nodes=("n1", "n2", "n3", "n4"),
        )  # fmt: skip
        more = virtual if node_type == "virtual" else 1.0
        maker.result(run, metric, seconds * more * share, "s")
    return maker


def jungels_hpl() -> StudyMaker:
    """Make a study of another system: half as fast on virtual nodes."""
    maker = StudyMaker("hpl", {"node_type": ["physical", "virtual"]}, {"node_type": "physical"})
    for node_type, (number, share) in product(("physical", "virtual"), enumerate(SPREAD, start=1)):
        run = maker.run(
            "hpl", {"n": 4942, "nb": 16, "p": 1, "q": 4}, {"node_type": node_type}, number
        )
        rate = (1.8 if node_type == "physical" else 0.9) * share
        maker.result(run, "gflops", rate, "Gflop/s", "higher")
    return maker


def bourilkov_xen() -> StudyMaker:
    """Make a study in which Xen reads faster than KVM, and writes more slowly."""
    rates = {"xen": {"write": 80e6, "read": 100e6}, "kvm": {"write": 90e6, "read": 70e6}}
    factors = {"node_type": list(rates), "clients": [1], "mode": ["sequential"]}
    maker = StudyMaker("xen", factors, {"node_type": "xen"})
    for node_type, (number, share) in product(rates, enumerate(SPREAD, start=1)):
        condition = {"node_type": node_type, "clients": 1, "mode": "sequential"}
        run = maker.run("iozone", {"directory": "/lustre/x"}, condition, number)
        for metric, rate in rates[node_type].items():
            maker.result(run, metric, rate * share, "bytes_per_s", "higher", metric == "write")
    return maker


def bourilkov_trees() -> StudyMaker:
    """Make a study of two clients: 50 MB/s each one after another, 45 MB/s at the same time."""
    modes = ["sequential", "parallel"]
    maker = StudyMaker("trees", {"clients": [2], "mode": modes}, {"mode": "sequential"})
    for mode, (number, share) in product(modes, enumerate(SPREAD, start=1)):
        condition = {"clients": 2, "mode": mode}
        run = maker.run("roottree", {"data": "/lustre/x"}, condition, number, nodes=("n1", "n2"))
        maker.result(run, "seconds", 2.0 * share, "s")
        for client in (1, 2):
            rate = (50e6 if mode == "sequential" else 45e6) * share
            maker.result(run, "bytes_per_s", rate, "bytes_per_s", "higher", False, client)
    return maker


def kommeri_cvmfs() -> StudyMaker:
    """Make a study of caches: 300 MB take 300 s, then 250 s and 300 MB more; 5000 MB take 165 s."""
    caches = {"cold:cvmfs=300": (420, 300, 250.0), "cold:cvmfs=5000": (320, 0, 165.0)}
    maker = StudyMaker("cvmfs", {"cache": list(caches)}, {"cache": "cold:cvmfs=5000"})
    for (cache, (first, more, seconds)), (number, share) in product(
        caches.items(), enumerate(SPREAD, start=1)
    ):
        run = maker.run("app", {"command": "cmsRun x"}, {"cache": cache}, number)
        for iteration, (megabytes, took_s) in enumerate(
            [(first, 300.0), (more, seconds), (more, seconds)], start=1
        ):
            maker.result(run, "seconds", took_s * share, "s", iteration=iteration)
            maker.result(run, "cvmfs_fetched_bytes", megabytes * 1e6 * share, "bytes",
                         primary=False, iteration=iteration)  # fmt: skip
    return maker


def kommeri_blades() -> StudyMaker:
    """Make a study of one client with round trips of 1 ms, and of ten with 2 ms.

    The records of both nodes have readings.
    """
    maker = StudyMaker("blades", {"clients": [1, 10]}, {"clients": 1})
    for (clients, ms), (number, share) in product(
        ((1, 1.0), (10, 2.0)), enumerate(SPREAD, start=1)
    ):
        run = maker.run(
            "xrootd", {"mode": "analysis"}, {"clients": clients, "network": "delay=0ms"}, number,
            elapsed_s=5.0, nodes=("v1", "v2"),
        )  # fmt: skip
        maker.result(run, "seconds", 5.0 * share, "s")
        for node, times in (("v1", 1.0), ("v2", 3.0)):
            trip_s = ms * share * times / 1e3
            maker.record(
                run, node, 5.0, tcp_connections=1, rtt_readings=100, rtt_min_s=trip_s / 2,
                rtt_median_s=trip_s, rtt_mean_s=trip_s, rtt_sd_s=0.0, rtt_max_s=trip_s * 2,
            )  # fmt: skip
    return maker


def ruiz_kernels() -> StudyMaker:
    """Make a study in which a newer kernel is 10 % faster in containers only."""
    factors = {"kernel_release": ["6.2", "6.12"], "launcher": [BARE, INSIDE]}
    maker = StudyMaker("kernels", factors, {"kernel_release": "6.2", "launcher": BARE})
    for (kernel, launcher), (number, share) in product(
        product(*factors.values()), enumerate(SPREAD, start=1)
    ):
        faster = kernel == "6.12" and launcher != BARE
        condition = {"kernel_release": kernel, "launcher": launcher}
        run = maker.run("npb", {"kernel": "cg", "class": "S", "ranks": 4}, condition, number)
        maker.result(run, "mops", (110 if faster else 100) * share, "Mop/s", "higher")
    return maker
