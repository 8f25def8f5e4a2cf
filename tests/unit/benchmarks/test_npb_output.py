"""The parser of NPB's closing block: recorded output of NASA's programs and ours."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

from steelyard.jobscripts import registry
from steelyard.jobscripts.registry import FailedError, OutputError, ParameterError, Result

DATA = Path(__file__).parents[2] / "data/npb"

load = functools.cache(registry.load)  # a parser reads thousands of outputs here
CG: dict[str, object] = {"kernel": "cg", "class": "S", "ranks": 2}
GOOD = sorted(DATA.glob("mpi.*.S.2.r1.out"))


def parse(folder: Path, text: str, given: dict[str, object], err: str = "") -> list[Result]:
    (folder / "out.0").write_text(text, encoding="utf-8")
    (folder / "err.0").write_text(err, encoding="utf-8")
    return load("npb").parse(folder, 0, given)


def refusal(folder: Path, text: str, given: dict[str, object], err: str = "") -> str:
    with pytest.raises((OutputError, FailedError)) as caught:
        parse(folder, text, given, err)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def read(name: str) -> str:
    return (DATA / name).read_text(encoding="utf-8")


def test_the_figures_are_those_of_the_block(tmp_path: Path) -> None:
    assert parse(tmp_path, read("mpi.cg.S.2.r1.out"), CG) == [
        Result("mops", 6053.96, "Mop/s", 1),
        Result("mops_per_process", 3026.98, "Mop/s", 1),
        Result("seconds", 0.01, "s", 1),
    ]


@pytest.mark.parametrize("path", GOOD, ids=[path.name for path in GOOD])
def test_every_kernel_of_nasa_is_read(path: Path, tmp_path: Path) -> None:
    kernel = path.name.split(".")[1]
    known = registry.load("npb").parameters["kernel"].choices
    if kernel not in known:
        pytest.skip(f"kernel {kernel} is not among our choices yet: {', '.join(map(str, known))}")
    found = {r.metric: r.value for r in parse(tmp_path, path.read_text(), {**CG, "kernel": kernel})}
    assert found["mops"] == pytest.approx(2 * found["mops_per_process"], abs=0.011)


def test_a_time_of_0_is_left_out_and_not_a_result(tmp_path: Path) -> None:
    found = parse(tmp_path, read("mpi.is.S.2.r1.out"), {**CG, "kernel": "is"})
    assert [r.metric for r in found] == ["mops", "mops_per_process"]


def test_ours_and_the_block_with_timers_behind_it_are_read(tmp_path: Path) -> None:
    found = {r.metric: r.value for r in parse(tmp_path, read("ours.cg.S.2.out"), CG)}
    assert found.keys() == {"mops", "mops_per_process", "seconds"}
    timed = {r.metric: r.value for r in parse(tmp_path, read("timerflag.cg.S.2.out"), CG)}
    assert timed["mops"] == 4229.85


VECTORS = "processes =                        2\n Vectors         =       {:>18}"


def with_vectors(text: str) -> str:
    return read("ours.cg.S.2.out").replace(
        "processes =                        2", VECTORS.format(text), 1
    )


def test_the_width_of_vectors_is_a_result_where_it_is_told(tmp_path: Path) -> None:
    found = {r.metric: r for r in parse(tmp_path, with_vectors("x86-64-v3 256 bits"), CG)}
    assert found["vector_bits"] == Result("vector_bits", 256, "bits", 1)
    for text in (with_vectors("not used"), read("mpi.cg.S.2.r1.out")):
        assert "vector_bits" not in {r.metric for r in parse(tmp_path, text, CG)}
    words = refusal(tmp_path, with_vectors("x86-64-v3 256"), CG)
    assert words == "out.0: Vectors is 'x86-64-v3 256', 'LEVEL N bits' was expected"


@pytest.mark.parametrize(
    ("name", "given", "wanted"),
    [
        ("unsuccessful.ep.S.2.out", {"kernel": "ep"}, "verification: UNSUCCESSFUL"),
        ("killed.lu.A.2.out", {"class": "A"}, "out.0: cut short: no 'Benchmark Completed'"),
        (
            "odd.cg.S.3.out",
            {"ranks": 3},
            "ERROR: Number of processes (3) is not a power of two (2?)",
        ),
        (
            "omp.cg.S.1.r1.out",
            {"ranks": 1},
            "out.0: not from an MPI program (NPB-OMP: 'Total threads'): 'Total processes' is missing",
        ),
        (
            "ser.cg.S.1.r1.out",
            {"ranks": 1},
            "out.0: not from an MPI program (serial, or a port): 'Total processes' is missing",
        ),
        ("mpi.cg.S.2.r1.out", {"class": "A"}, "out.0: class is S instead of A"),
        ("mpi.cg.S.2.r1.out", {"ranks": 4}, "out.0: ranks is 2 instead of 4"),
        ("mpi.cg.S.2.r1.out", {"kernel": "mg"}, "out.0: kernel is cg instead of mg"),
    ],
)
def test_bad_output_is_told_in_one_line(
    name: str, given: dict[str, object], wanted: str, tmp_path: Path
) -> None:
    assert refusal(tmp_path, read(name), {**CG, **given}) == wanted


def test_idle_ranks_are_seen(tmp_path: Path) -> None:
    text = re.sub(
        "Active procs    =                        2", "Active procs = 1", read(GOOD[0].name)
    )
    assert refusal(tmp_path, text, CG) == ("out.0: only 1 of 2 ranks took part in the computation")


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("6053.96", "*******", "out.0: Mop/s total is '*******': Fortran prints stars where a number does not fit its columns"),
        ("6053.96", "    NaN", "out.0: Mop/s total is 'NaN', which cannot be"),
        (
            "6053.96",
            "   0.00",
            ("out.0: Mop/s total is 0: the run was too short to be timed, or too slow for the decimals "
            "that are printed"),
        ),
        ("SUCCESSFUL\n Version", "\n Version", "out.0: the closing block has no 'Verification'"),
        ("processes =                        2", "processes = x", "out.0: Total processes is 'x', a count is needed"),
    ],
)  # fmt: skip
def test_damaged_figures_are_no_results(old: str, new: str, wanted: str, tmp_path: Path) -> None:
    text = read("mpi.cg.S.2.r1.out")
    assert old in text
    assert refusal(tmp_path, text.replace(old, new), CG) == wanted


def test_a_block_cut_anywhere_is_refused(tmp_path: Path) -> None:
    text = read("mpi.cg.S.2.r1.out")
    end = text.index(" Version")
    for length in range(0, end, 7):
        refusal(tmp_path, text[:length], CG)


def test_two_runs_in_one_output_are_refused(tmp_path: Path) -> None:
    text = read("mpi.cg.S.2.r1.out")
    assert refusal(tmp_path, text + text, CG) == ("out.0: 2 runs in one output, one was expected")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("mpirun.noexec.txt", "mpirun was unable to launch the specified application"),
        ("mpirun.noslots.txt", "There are not enough slots available in the system"),
    ],
)
def test_what_mpirun_says_is_told(name: str, wanted: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, "", CG, err=read(name)).startswith(wanted)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"implementation": "nasa"}, "implementation is steelyard (Steelyard "),
    ],
)
def test_ours_is_not_taken_for_another(
    given: dict[str, object], words: str, tmp_path: Path
) -> None:
    assert words in refusal(tmp_path, read("ours.cg.S.2.out"), {**CG, **given})


def test_nasas_is_not_taken_for_ours(tmp_path: Path) -> None:
    given = {**CG, "implementation": "steelyard"}
    words = refusal(tmp_path, read("mpi.cg.S.2.r1.out"), given)
    assert words.endswith(") instead of steelyard")
    assert parse(tmp_path, read("mpi.cg.S.2.r1.out"), {**CG, "implementation": "nasa"})


def test_stars_and_multi_zone_programs_are_refused_by_their_names(tmp_path: Path) -> None:
    text = read("mpi.cg.S.2.r1.out")
    stars = re.sub(r"(Mop/s total +=) +6053.96", r"\1          ***************", text)
    assert "'***************': Fortran prints stars" in refusal(tmp_path, stars, CG)
    words = refusal(tmp_path, text.replace("CG Benchmark", "BT-MZ Benchmark"), CG)
    assert "BT-MZ is a multi-zone program" in words


def test_the_error_of_a_result_is_no_failure(tmp_path: Path) -> None:
    text = read("mpi.cg.S.2.r1.out")
    assert "Error is" in text
    words = refusal(tmp_path, text.replace(" CG Benchmark Completed.", ""), CG)
    assert words == "out.0: cut short: no 'Benchmark Completed'"


@pytest.mark.parametrize("name", ["E", "F"])
def test_the_largest_classes_are_those_of_nasa(tmp_path: Path, name: str) -> None:
    npb = registry.load("npb")
    assert npb.check_parameters({"class": name, "folder": "/opt/npb"})["class"] == name
    with pytest.raises(ParameterError, match=f"npb: class = '{name}' needs folder: absolute path"):
        npb.check_parameters({"class": name})
    text = re.sub(r"(Class +=) +S", rf"\1 {name}", read("mpi.cg.S.2.r1.out"))
    given = {**CG, "class": name, "folder": "/opt/npb"}
    assert parse(tmp_path, text, given)[0] == Result("mops", 6053.96, "Mop/s", 1)
