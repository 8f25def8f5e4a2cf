"""G. M. Jungels: virtual against physical nodes, for MPI programs and file systems."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from steelyard.analysis.papers.claim_files import ABSENT, Facts, PrintedValue, read_csv_rows
from steelyard.analysis.papers.jungels2012.figures import draws
from steelyard.analysis.papers.paper import read_paper

FOLDER = Path(__file__).parent
# The file tests as his scripts ran them: the time includes the start of a cp or dd for each file,
# and such a time has its own name.
FILES: Facts = {"benchmark": "filesystem", "process": "each"}
LARGE_FILE: Facts = {**FILES, "test": "large_file_copy"}
WRITTEN: Facts = {**FILES, "test": "small_file_write", "clients": 4}
LINPACK_SIZE: Facts = {"n": 4942, "nb": 16, "p": 1, "q": 4}
DIRECTORIES = {"Lustre": "*lustre*", "NFS": "*nfs*", "PVFS": ["*pvfs*", "*orangefs*"]}
FILE_SIZES: dict[str, Facts] = {
    "large_file_copy": {"size": 490_000_000},
    "small_file_copy": {"copy_files": [1000, 2048], "file_size": 1024},
    "small_file_write": {"write_files": 1024, "file_size": 1024},
}


def benchmarks() -> Iterator[PrintedValue]:
    """Yield the values of appendix D."""
    for row in read_csv_rows(FOLDER / "means_hpc.csv"):
        name, node_type = row["benchmark"], row["node_type"]
        is_linpack = name == "XHPL"
        program = (
            {"benchmark": "hpl"} if is_linpack else {"benchmark": "npb", "kernel": name.lower()}
        )
        yield PrintedValue(
            table="Appendix D: NPB class B on 4 nodes, and XHPL (means of the printed values)",
            place=(name, node_type),
            column="mean",
            printed=float(row["mean"]),
            unit="Gflop/s" if is_linpack else "Mop/s",
            metric="gflops" if is_linpack else "mops",
            facts={**program, "node_type": node_type},
            study="jungels2012-hpc",
            size=LINPACK_SIZE if is_linpack else {"class": "B", "ranks": 4},
        )


def file_tests() -> Iterator[PrintedValue]:
    """Yield the values of appendices B and C."""
    for row in read_csv_rows(FOLDER / "means_files.csv"):
        clients = int(row["nodes_at_once"])
        yield PrintedValue(
            table="Appendices B and C: seconds of an iteration (means of the printed values)",
            place=(row["test"], row["filesystem"], row["nodes_at_once"], row["node_type"]),
            column="mean",
            printed=float(row["mean"]),
            unit="s",
            metric="seconds_by_processes",
            facts={
                **FILES,
                "test": row["test"],
                "directory": DIRECTORIES[row["filesystem"]],
                "clients": [1, ABSENT] if clients == 1 else clients,
                "node_type": row["node_type"],
            },
            study="jungels2012-files-as-run",
            size=FILE_SIZES[row["test"]],
        )


PAPER = read_paper(
    FOLDER,
    'G. M. Jungels, "Virtualization in High-Performance Computing: An Analysis of Physical and Virtual '
    'Node Performance", Purdue University 2012 (College of Technology Masters Theses, paper 64)',
    "Jungels 2012",
    draws,
    scopes={"large_file": LARGE_FILE, "written": WRITTEN},
    values=[*benchmarks(), *file_tests()],
)
