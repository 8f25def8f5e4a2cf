"""Programs and versions that people have: the right values of each one's output, or a refusal that names it.

The outputs are made after public forms (README.md beside each). Values are read off the output by hand.
"""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from steelyard.jobscripts import registry
from steelyard.jobscripts.hpl.parse import NVIDIA_IGNORES
from steelyard.jobscripts.registry import FailedError, OutputError, Result

DATA = Path(__file__).parents[2] / "data"
Given = dict[str, object]
Value = tuple[float, str]  # with its unit

load = functools.cache(registry.load)

NVIDIA_24: Given = {"n": 65536, "nb": 1024, "p": 2, "q": 2, "pmap": "column", "xhpl": "/opt/hpl.sh"}
NVIDIA_23: Given = {
    "n": 32768,
    "nb": 1024,
    "q": 2,
    "xhpl": "/opt/hpl.sh",
    "nbmin": 2,
    "rfact": "right",
    "bcast": "2ringM",
    "depth": 0,
}
NVIDIA_21: Given = {
    "n": 40000,
    "nb": 288,
    "q": 2,
    "xhpl": "/opt/hpl.sh",
    "nbmin": 2,
    "pfact": "left",
    "rfact": "left",
    "bcast": "2ringM",
    "depth": 0,
    "swap": "long",
    "l1": "no-transposed",
    "equilibration": False,
}
ROCHPL: Given = {
    "n": 45312,
    "nb": 384,
    "q": 2,
    "xhpl": "/opt/rochpl",
    "rfact": "right",
    "bcast": "1ring",
    "swap": "long",
    "equilibration": False,
}
INTEL: Given = {
    "n": 20000,
    "nb": 192,
    "p": 2,
    "q": 2,
    "xhpl": "/opt/xhpl_intel64_dynamic",
    "pmap": "column",
    "nbmin": 2,
    "bcast": "1ring",
    "depth": 0,
}
HPCG: Given = {"program": "/opt/xhpcg_skx", "ranks": 2, "nx": 16, "ny": 24, "nz": 32}
IOZONE: Given = {"tests": "0 1 2 3 4 5 6 7", "processes": 2, "size": "4MiB", "record": "64KiB"}
AUTO: Given = {
    "mode": "auto",
    "tests": "0 1 2",
    "size": "512KiB",
    "most_size": "1MiB",
    "record": "64KiB",
    "most_record": "128KiB",
}
MDTEST: Given = {"program": "/opt/mdtest", "files": 200, "kind": "both"}
CG_E: Given = {"kernel": "cg", "class": "E", "ranks": 1024, "folder": "/opt/npb"}
MG_F: Given = {"kernel": "mg", "class": "F", "ranks": 4096, "folder": "/opt/npb"}
OSU: Given = {"program": "/opt/osu_bw", "smallest": 8, "largest": 64, "repetitions": 1}

READ: list[tuple[str, str, Given, dict[str, Value]]] = [
    ("hpl", "hpl/nvidia.24.out", NVIDIA_24, {"gflops": (15210, "Gflop/s"), "residual": (0.000412345678, "1")}),
    ("hpl", "hpl/nvidia.23.out", NVIDIA_23, {"gflops": (8089, "Gflop/s"), "residual": (0.0021234, "1")}),
    ("hpl", "hpl/nvidia.21.out", NVIDIA_21, {"gflops": (1985, "Gflop/s"), "residual": (0.0029328, "1")}),
    ("hpl", "hpl/rochpl.out", ROCHPL, {"gflops": (13600, "Gflop/s"), "residual": (0.0000297, "1")}),
    ("hpl", "hpl/intel.out", INTEL, {"gflops": (345.525, "Gflop/s"), "residual": (0.00335731234, "1")}),
    *(
        ("hpcg", f"hpcg/{name}", HPCG, {"gflops": (1.15456, "Gflop/s"), "raw_gflops": (1.15948, "Gflop/s"), "solve_s": (2.21053, "s")})
        for name in ("intel.3.1.txt", "nvidia.3.1.txt")
    ),
    ("hpcg", "hpcg/intel.3.0.yaml", HPCG, {"gflops": (0.0667481, "Gflop/s"), "solve_s": (6.37435, "s")}),
    *(
        ("iozone", f"iozone/{name}.out", IOZONE, {"write": (710475.44 * 1024, "bytes_per_s"), "fread": (31441870 * 1024, "bytes_per_s")})
        for name in ("throughput.3.420", "threads.3.471")
    ),
    ("iozone", "iozone/auto.3.420.out", AUTO, {"write": (42820 * 1024, "bytes_per_s"), "random_write": (1442420 * 1024, "bytes_per_s")}),
    ("mdtest", "mdtest/both.4.1.0.out", MDTEST, {"file_create": (998.41, "files_per_s"), "directory_remove": (291.665, "files_per_s")}),
    ("npb", "npb/mpi.cg.E.1024.out", CG_E, {"mops": (524637.02, "Mop/s"), "mops_per_process": (512.34, "Mop/s"), "seconds": (108.72, "s")}),
    ("npb", "npb/mpi.mg.F.4096.out", MG_F, {"mops": (2039185.41, "Mop/s"), "mops_per_process": (497.85, "Mop/s"), "seconds": (61.07, "s")}),
    ("osu", "osu/bw.validated.7.out", OSU, {"bandwidth_bytes_per_s": (16.42e6, "bytes_per_s")}),
    ("osu", "osu/reduce_scatter_block.7.out", OSU, {"collective_s": (2.91e-6, "s")}),
    ("osu", "osu/IMB-Allreduce.gpu.out", {**OSU, "test": "Allreduce", "ranks": 4}, {"collective_s": (4.66e-6, "s")}),
]  # fmt: skip
SENDRECV: Given = {**OSU, "test": "Sendrecv"}
REFUSED: list[tuple[str, str, Given, str]] = [
    ("hpl", "hpl/nvidia-ai.out", NVIDIA_23, "is of HPL-MxP (HPL-AI), which factors in lower precision"),
    ("hpl", "hpl/rochpl-mxp.out", {**ROCHPL, "pmap": "column"}, "'HPLMXP_pdgesv' is of HPL-MxP (HPL-AI)"),
    ("hpl", "hpl/rochpl.notable.out", ROCHPL, "rocHPL without its table, which is in HPL.out"),
    ("hpl", "hpl/nvidia.24.out", {**NVIDIA_24, "pmap": "row"}, "HPL-NVIDIA's variant WC0 was run instead of WR0: another pmap"),
    ("hpl", "hpl/nvidia.24.out", {**NVIDIA_24, "bcast": "1ring", "depth": 0}, "HPL-NVIDIA ignores bcast, depth"),
    ("iozone", "iozone/auto.ops.out", AUTO, "iozone with -O or -N: 'OPS Mode. Output is in operations per second.'"),
    ("mdtest", "mdtest/both.1.9.3.out", MDTEST, "mdtest 1.9.3, tables: none"),
    ("npb", "npb/mz.bt.C.4.out", {"kernel": "bt", "class": "C", "ranks": 4, "folder": "/opt/npb"}, "BT-MZ is a multi-zone program (NPB-MZ)"),
    ("npb", "npb/omp.cg.S.1.r1.out", {"kernel": "cg", "class": "S"}, "NPB-OMP: 'Total threads'"),
    ("osu", "osu/put_latency.5.out", OSU, "'OSU MPI_Put Latency Test v5.8' is none that can be read"),
    ("osu", "osu/iallreduce.7.out", OSU, "OSU's test 'Non-blocking Allreduce Latency' is none"),
    ("osu", "osu/bw_fan_in.7.out", {**OSU, "program": "/opt/osu_bw_fan_in"}, "osu_bw_fan_in prints the rate of several ranks"),
    ("osu", "osu/IMB-RMA.2021.out", SENDRECV, "2021.7, MPI-RMA part' is none that can be read"),
    ("osu", "osu/IMB-Sendrecv.check.out", SENDRECV, "IMB built with CHECK is slower"),
    ("osu", "osu/IMB-Sendrecv.multi.out", SENDRECV, "'Benchmarking Multi-Sendrecv': several groups at once (-multi)"),
]  # fmt: skip


def parse(folder: Path, name: str, text: str, given: Given) -> list[Result]:
    (folder / "out.0").write_text(text, encoding="utf-8")
    return load(name).parse(folder, 0, given)


def read(file: str) -> str:
    return (DATA / file).read_text(encoding="utf-8")


def refusal(folder: Path, name: str, text: str, given: Given) -> str:
    with pytest.raises((OutputError, FailedError)) as caught:
        parse(folder, name, text, given)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(("name", "file", "given", "values"), READ, ids=[one[1] for one in READ])
def test_the_values_of_a_program_are_those_of_its_output(
    tmp_path: Path, name: str, file: str, given: Given, values: dict[str, Value]
) -> None:
    first = {r.metric: r for r in reversed(parse(tmp_path, name, read(file), given))}
    for metric, (value, unit) in values.items():
        assert first[metric].value == pytest.approx(value, rel=1e-12)
        assert first[metric].unit == unit


@pytest.mark.parametrize(
    ("name", "file", "given", "words"), REFUSED, ids=[f"{one[1]} {one[3][:30]}" for one in REFUSED]
)
def test_a_program_that_is_not_read_is_refused_by_its_name(
    tmp_path: Path, name: str, file: str, given: Given, words: str
) -> None:
    assert words in refusal(tmp_path, name, read(file), given)


def test_the_rate_of_all_gpus_is_read_with_its_time(tmp_path: Path) -> None:
    found = {
        r.metric: r.value for r in parse(tmp_path, "hpl", read("hpl/nvidia.24.out"), NVIDIA_24)
    }
    # 2/3 * 65536^3 + 3/2 * 65536^2 = 1.87656e14 operations at 1.521e13 a second; 12.34 s are printed
    assert found["hpl_s"] == pytest.approx(12.3377, abs=1e-4)


def test_what_nvidia_ignores_has_the_defaults_of_hpl_dat() -> None:
    parameters = load("hpl").parameters
    assert {key: parameters[key].default for key in NVIDIA_IGNORES} == NVIDIA_IGNORES


def test_a_row_of_netlib_never_names_its_mapping_alone(tmp_path: Path) -> None:
    text = read("hpl/nvidia.24.out").replace(
        "HPL-NVIDIA 24.6.0  -- NVIDIA", "HPL 24.6.0  -- NVIDIA"
    )
    assert "variant WC0 was run instead of WC11C2R4" in refusal(tmp_path, "hpl", text, NVIDIA_24)


def test_data_that_arrived_wrong_fail_the_run(tmp_path: Path) -> None:
    text = read("osu/bw.validated.7.out").replace("Pass", "Fail", 1)
    words = refusal(tmp_path, "osu", text, OSU)
    assert words == "out.0: Bandwidth 1: 8 bytes: the program's check of the data says Fail"


@pytest.mark.parametrize(
    "title",
    [
        "# OSU OpenSHMEM Put Test v7.4",
        "# OSU NCCL Latency Test v7.4",
        "# OSU MPI Latency Test (Version 2.2)",
        "# OMB Python MPI Latency Test v1.0",
        "# Intel(R) MPI Benchmarks 2021.11, MT part",
        "# Intel(R) MPI Benchmarks 2021.7, IMB-P2P part",
    ],
)
def test_other_suites_are_refused_by_their_title(tmp_path: Path, title: str) -> None:
    text = f"{title}\n# Size          Latency (us)\n8                 1.02\n"
    assert title.lstrip("# ") in refusal(tmp_path, "osu", text, OSU)


def test_columns_that_are_not_known_are_quoted(tmp_path: Path) -> None:
    text = read("osu/bw.7.out").replace("(MB/s)", "(MB/s)     Transmit Size")
    assert "Bandwidth: the columns '# Size Bandwidth (MB/s) Transmit Size' are none" in refusal(
        tmp_path, "osu", text, OSU
    )


def test_an_iozone_without_its_unit_is_refused(tmp_path: Path) -> None:
    text = read("iozone/auto.3.420.out").replace("\tOutput is in Kbytes/sec\n", "")
    assert "no unit in it" in refusal(tmp_path, "iozone", text, AUTO)


def test_statistics_of_mdtests_ranks_are_refused_by_their_option(tmp_path: Path) -> None:
    text = read("mdtest/both.4.1.0.out").replace(
        "   Operation      ", "   Operation     per Rank: Max "
    )
    assert "without --showRankStatistics" in refusal(tmp_path, "mdtest", text, MDTEST)


STREAM_TITLE = "STREAM version $Revision: 5.10 $"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Array size =", "Data is distributed across 16 MPI ranks\n   Array size ="),
        ("This system uses 8 bytes per array element.", "This system uses 8 bytes per DOUBLE PRECISION word."),
        (STREAM_TITLE, "BabelStream"),
        (STREAM_TITLE, " STREAM Version $Revision: 5.6 $"),
    ],
)  # fmt: skip
def test_other_programs_named_stream_are_refused_by_a_line_of_theirs(
    tmp_path: Path, old: str, new: str
) -> None:
    text = read("stream/stream.5.10.out").replace(old, new, 1)
    words = refusal(tmp_path, "stream", text, {"elements": 2000000, "threads": 2})
    assert f"'{new.splitlines()[0].strip()}' is of another STREAM" in words


def test_an_ior_before_3_3_is_refused_by_its_version(tmp_path: Path) -> None:
    text = read("ior/easy.3.3.0.out").replace("IOR-3.3.0", "IOR-3.2.1")
    text = text.replace(" Stonewall(s) Stonewall(MiB)", "").replace("NA            NA", "")
    given: Given = {"program": "/opt/ior", "repetitions": 3}
    assert "the output of IOR 3.2.1, whose summary" in refusal(tmp_path, "ior", text, given)


def test_the_version_of_another_io500_is_quoted_and_blanks_at_the_end_are_none(
    tmp_path: Path,
) -> None:
    given: Given = {"program": "/opt/io500", "config": "/opt/io500.ini", "invalid": True}
    text = read("io500/invalid.out")
    blanks = text.replace(" seconds\n", " seconds \n")
    assert parse(tmp_path, "io500", blanks, given) == parse(tmp_path, "io500", text, given)
    extended = text.replace("(standard)", "(extended)")
    words = refusal(tmp_path, "io500", extended, given)
    assert "expected once: IO500 version io500-isc26_v2-26-g02091cf254d8 (extended)" in words
