"""Results as a shipped study's own plan would give them: every condition, with made-up values.

Also the text of which of its conditions are compared with its paper's claims and printed numbers.
`python -m tests.system.papers.shipped` writes tests/data/papers: review what has changed there.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.unit.summary.study_maker import StudyMaker

from steelyard.analysis.papers.conditions import network_facts
from steelyard.analysis.papers.printed_comparisons import PrintedComparison
from steelyard.analysis.papers.report import PAPERS, ComparisonReport, build_comparison_report
from steelyard.analysis.papers.verdicts import Verdict
from steelyard.analysis.summary.numeric_factors import parse_specification
from steelyard.analysis.summary.summary import summarize
from steelyard.jobscripts import registry
from steelyard.jobscripts.example_studies import FOLDER, examples
from steelyard.wrappers.study import study as study_file
from steelyard.wrappers.study.plan import make_plan
from steelyard.wrappers.study.planned_run import Run, is_node_local
from steelyard.wrappers.study.study import Study

SPREAD = (0.99, 1.0, 1.01)  # of the three repeats
ITERATIONS = 3
INPUT_BYTES = 1.4e9
COMPUTED_S = 100.0
KEPT = Path(__file__).parents[2] / "data/papers"
NEEDED = frozenset(
    ("bytes_read", "bytes_per_s", "wait_share", "rtt_s")
)  # for shares of a difference
PROFILE = frozenset(
    f"{part}_{what}" for part in ("compute", "communication", "init") for what in ("share", "s")
) | {"messages", "message_bytes"}  # fmt: skip


def shipped(name: str) -> StudyMaker:
    """Return an example study as if it had been run three times and collected."""
    read = study_file.load_study(FOLDER / f"{name}.toml")
    read = replace(read, repeat=len(SPREAD), blocks=len(SPREAD))
    maker = StudyMaker(read.name, read.factors, read.baseline)
    for run in make_plan(read):
        add_run(maker, read, run)
    return maker


def add_run(maker: StudyMaker, read: Study, run: Run) -> None:
    """Add a run with its benchmark's figures, and a record of each node."""
    spans = "clients" in run.condition and is_node_local(run.benchmark)
    count = int(run.condition["clients"]) if spans else read.job.nodes
    nodes = [f"n{number}" for number in range(1, count + 1)]
    share = SPREAD[run.repeat - 1]
    made = maker.run(
        run.benchmark,
        run.parameters,
        run.condition,
        run.repeat,
        nodes=nodes,
        variant=run.variant,
        condition_label=run.condition_label,
        is_baseline=run.is_baseline,
        block=run.block,
    )
    specs = registry.load(run.benchmark).results
    for metric in told(run):
        spec = specs[metric]
        value = share * value_of(run, metric)
        for iteration in range(1, 1 + min(ITERATIONS, int(run.parameters.get("iterations") or 1))):
            maker.result(
                made, metric, value, spec.unit, spec.better, spec.primary, iteration=iteration
            )
    for node in nodes:
        maker.record(
            made, node, 10.0, energy_j=50.0 * share, tcp_connections=1, rtt_readings=100,
            rtt_min_s=0.001, rtt_median_s=0.002, rtt_mean_s=0.002, rtt_sd_s=0.001, rtt_max_s=0.003,
            record='{"tcp": {"rtt_floor_s": 0.001}}',
        )  # fmt: skip


def told(run: Run) -> Iterator[str]:
    """Yield the figures that a run of these parameters has, and any paper uses."""
    given: Mapping[str, Any] = run.parameters
    left_out: set[str] = set()
    if run.benchmark == "filesystem":
        left_out.add("seconds" if given["process"] == "each" else "seconds_by_processes")
    if run.benchmark == "npb" and not given["profile"]:
        left_out |= PROFILE
    for metric in sorted((asked() | NEEDED) & registry.load(run.benchmark).results.keys()):
        if metric not in left_out and (given.get("cvmfs") or not metric.startswith("cvmfs_")):
            yield metric


@functools.cache
def asked() -> set[str]:
    """Return the metrics of all claims and printed numbers."""
    found = {metric for paper in PAPERS.values() for metric in paper.metrics}
    return {name.removesuffix("_first").removesuffix("_following") for name in found}


def value_of(run: Run, metric: str) -> float:
    """Return ten for every metric; for xrootd, the result of delay, rate and size."""
    if run.benchmark != "xrootd":
        return 1 / 3 if metric.endswith("_share") else 10.0
    network = network_facts(parse_specification(str(run.condition.get("network", "none"))), 2)
    rate = network.get("rate_mbit", 1000.0) * 1e6 / 8
    trip_s = network["round_trip_ms"] / 1e3
    waited_s = INPUT_BYTES / rate + (0 if run.parameters["mode"] == "xrdcp" else 200 * trip_s)
    laws = {
        "seconds": COMPUTED_S + waited_s,
        "first_end_s": COMPUTED_S + waited_s,
        "bytes_read": INPUT_BYTES,
        "bytes_per_s": rate,
        "wait_share": waited_s / (COMPUTED_S + waited_s),
        "rtt_s": 1e-4 + trip_s,
    }
    return laws.get(metric, 10.0)


def beside(studies: Sequence[str], folder: Path) -> ComparisonReport:
    """Compare studies of one paper with it."""
    found = [summarize(shipped(name).write(folder)) for name in studies]
    return build_comparison_report(found, paper_of(studies[0]))


def paper_of(study: str) -> str:
    """Return `ruiz2015` for `ruiz2015-q2`."""
    return study.partition("-")[0]


def groups(paper: str) -> list[tuple[str, ...]]:
    """Return a paper's studies, each alone, and those that a claim uses together."""
    alone = [(one.name,) for one in examples() if paper_of(one.name) == paper]
    together = dict.fromkeys(tuple(claim.studies) for claim in PAPERS[paper].claims)
    return [*alone, *(names for names in together if len(names) > 1)]


# --- text ----------------------------------------------------------------------------------------


def sides(report: ComparisonReport) -> str:
    """Return the compared conditions, a line per pair."""
    lines: list[str] = []
    for one in sorted(
        (one for one in report.verdicts if one.evidence), key=lambda one: one.claim.words
    ):
        lines += [one.claim.words, *(f"    {line}" for line in seen_lines(one))]
    tables = dict.fromkeys(value.value.table for value in report.values if value.row)
    for title in tables:
        members = [one for one in report.values if one.row and one.value.table == title]
        lines += [f"printed: {title}", *(f"    {line}" for line in printed_lines(members))]
    return "".join(f"{line}\n" for line in lines)


def seen_lines(one: Verdict) -> list[str]:
    """Return `cg, ep: launcher=podman…  against  launcher=bare`."""
    found: dict[str, list[str]] = {}
    for seen in one.evidence:
        what, against = short(seen.condition), f"  against  {short(seen.against)}"
        words = (
            f"{what}{against if seen.against else ''}{f'  ({seen.remark})' if seen.remark else ''}"
        )
        found.setdefault(words, []).append(seen.variant)
    return sorted(f"{listed(variants)}: {words}" for words, variants in found.items())


def printed_lines(members: Iterable[PrintedComparison]) -> list[str]:
    """Return `12: sm · comm, cpu · CG.B, EP.B · time_ms: launcher=bare`."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for one in members:
        assert one.row is not None
        words = short(one.row.group.label) + (f"  ({one.remark})" if one.remark else "")
        found.setdefault(words, []).append((*one.value.place, one.value.column))
    return sorted(
        f"{len(places)}: {' · '.join(map(listed, zip(*places, strict=True)))}: {words}"
        for words, places in found.items()
    )


def listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(set(names)))


def short(label: str) -> str:
    return label.replace("podman:localhost/steelyard-mpi:1", "podman").replace("\u00a0", " ")


def kept(studies: Sequence[str]) -> Path:
    """Return the file of the text."""
    return KEPT / f"{'+'.join(studies)}.txt"


def main() -> None:
    """Write all files."""
    for paper in PAPERS:
        for studies in groups(paper):
            with tempfile.TemporaryDirectory() as folder:
                words = sides(beside(studies, Path(folder)))
            kept(studies).write_text(words, encoding="utf-8")


if __name__ == "__main__":
    main()
