"""C. Ruiz, E. Jeanvoine, L. Nussbaum: what containers cost MPI programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from steelyard.analysis.papers.claim_files import ABSENT, Claim, Facts, PrintedValue, read_csv_rows
from steelyard.analysis.papers.conditions import DELAY, Studies, describe_other_sizes, has_facts
from steelyard.analysis.papers.paper import read_paper
from steelyard.analysis.papers.ruiz2015.figures import draws
from steelyard.analysis.papers.verdicts import Evidence, Kind, decide_outcome, format_short_name
from steelyard.analysis.stats.number_format import format_mean

FOLDER = Path(__file__).parent
# TCP waits for time-outs if packets are lost. The paper's network lost some by itself. A study with
# a lossless network may request loss (loss=), and the report mentions it.
ANY_LOSS: Facts = {"benchmark": "npb", DELAY: 0, "rate_mbit": ABSENT}
# The paper's network: without delay, loss or a limit.
NPB: Facts = {"benchmark": "npb", DELAY: 0, "loss_percent": ABSENT, "rate_mbit": ABSENT}

CONFIGURATIONS: dict[str, Facts] = {
    "multinode": {"container": False, "nodes": 8},
    "container": {"container": True, "nodes": 1, "containers": 8, "ranks_across": True},
    "sm": {"container": False, "nodes": 1},
}
PARTS = {"cpu": "compute", "comm": "communication", "init": "init"}
# Column: (end of the metric's name, unit, scale).
COLUMNS = {"share_percent": ("share", "%", 100.0), "time_ms": ("s", "ms", 1000.0)}


def table_1() -> Iterator[PrintedValue]:
    """Yield the shares and times of table 1, with 16 processes."""
    for row in read_csv_rows(FOLDER / "table1.csv"):
        configuration, part, program = row["configuration"], row["part"], row["benchmark"]
        kernel, _, size = program.partition(".")
        for column, (end, unit, scale) in COLUMNS.items():
            yield PrintedValue(
                table="Table 1: where the time goes, 16 processes",
                place=(configuration, part, program),
                column=column,
                printed=float(row[column]),
                unit=unit,
                metric=f"{PARTS[part]}_{end}",
                facts={**NPB, **CONFIGURATIONS[configuration], "kernel": kernel.lower()},
                study="ruiz2015-q2" + ("-multinode" if configuration == "multinode" else ""),
                size={"ranks": 16, "class": size},
                scale=scale,
            )


def means(studies: Studies, claim: Claim) -> Iterator[Evidence]:
    """Judge the mean itself (of MPI_Init), only of the paper's own sizes if there are any."""
    rows = [
        row
        for metric in claim.metrics
        for row in studies.rows.get(metric, [])
        if row.interval and has_facts(studies.find_facts(row), claim.where)
    ]
    exact = [row for row in rows if has_facts(studies.find_facts(row), claim.size)]
    for row in exact or rows:
        assert row.interval is not None
        found = format_mean(row.interval, row.metric.unit)
        yield Evidence(
            decide_outcome(row.interval.low, row.interval.high, claim),
            f"{format_short_name(studies, row)}: {row.metric.name} {found}, n = {row.n}",
            row.group.label,
            value=row.interval.mean,
            low=row.interval.low,
            high=row.interval.high,
            remark=", ".join(describe_other_sizes(studies.find_facts(row), claim.size)),
            variant=row.group.variant,
        )


PAPER = read_paper(
    FOLDER,
    'C. Ruiz, E. Jeanvoine, L. Nussbaum, "Performance evaluation of containers for HPC", VHPC 2015 '
    "(hal-01195549)",
    "Ruiz et al. 2015",
    draws,
    scopes={"npb": NPB, "npb_any_loss": ANY_LOSS},
    values=list(table_1()),
    kinds={"mean": Kind(means)},
)
