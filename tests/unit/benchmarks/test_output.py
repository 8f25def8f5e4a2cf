"""The benchmarks' parsers: recorded output, good, failed, damaged, cut short."""

from __future__ import annotations

import functools
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from steelyard.jobscripts import registry
from steelyard.jobscripts.registry import FailedError, OutputError, Result

DATA = Path(__file__).parents[2] / "data"

load = functools.cache(registry.load)  # a parser reads thousands of outputs here
Given = dict[str, object]
HPCC: Given = {"n": 1000, "nb": 80, "q": 2}
NVIDIA: Given = {
    "n": 65536,
    "nb": 1024,
    "p": 2,
    "q": 2,
    "pmap": "column",
    "xhpl": "/opt/hpl.sh",
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
HPCC_SMALL: Given = {"n": 200, "nb": 64}
XHPL: Given = {"n": 1000, "nb": 64, "q": 2, "xhpl": "/opt/xhpl"}
SMALL: Given = {"copy_files": 50, "write_files": 50, "size": "1MiB", "iterations": 3}
FIO: Given = {"bs": 4096, "size": "2MiB", "numjobs": 2}
IOZONE: Given = {"tests": "0 1 2 3 4 5 6 7", "processes": 2, "size": "4MiB", "record": "64KiB"}
IOZONE_2: Given = {"tests": "0 1", "processes": 2, "size": "32MiB", "record": "64KiB"}
IOZONE_AUTO: Given = {
    "mode": "auto",
    "tests": "0 1 2",
    "size": "512KiB",
    "most_size": "1MiB",
    "record": "64KiB",
    "most_record": "128KiB",
}
SAME_PROGRAM = {"hpl", "hpcc"}
HPCG: Given = {"program": "/opt/xhpcg", "ranks": 2, "nx": 16, "ny": 24, "nz": 32}
OSU: Given = {"program": "/opt/osu", "smallest": 8, "largest": 64, "repetitions": 1}
OSU_FILES = (
    "bw.7",
    "bw.validated.7",
    "bibw.5",
    "mbw_mr.5",
    "allreduce.5",
    "allreduce_full.7",
    "barrier.5",
)
IMB: dict[str, Given] = {
    "PingPong.2017": {"test": "pingpong", "ranks": 4},
    "Sendrecv.2021": {"test": "Sendrecv"},
    "Allreduce.2021": {"test": "Allreduce", "ranks": 4},
    "Barrier.2021": {"test": "Barrier", "ranks": 4},
}
IOR: Given = {"program": "/opt/ior", "repetitions": 3}
IOR_JSON: Given = {"program": "/opt/ior", "repetitions": 2, "summary": "json"}
MDTEST: Given = {"program": "/opt/mdtest", "files": 200, "kind": "both"}
IO500: Given = {"program": "/opt/io500", "config": "/opt/io500.ini", "invalid": True}
XROOTD: Given = {"events": 3000, "cluster": 1000, "step": 1000, "clients": 2, "iterations": 2}

GOOD: list[tuple[str, str, Given]] = [
    ("hpl", "hpcc/hpccoutf.N1000.np2.txt", HPCC),
    ("hpl", "hpcc/hpccoutf.N200.np1.txt", HPCC_SMALL),
    ("hpl", "hpl/N1000.np2.NB64.out", XHPL),
    ("hpl", "hpl/N1000.np2.openblas-serial.out", {**XHPL, "nb": "16 64"}),
    ("hpl", "hpl/nvidia.24.out", NVIDIA),
    ("hpl", "hpl/rochpl.out", ROCHPL),
    ("stream", "stream/stream.5.10.out", {"elements": 2000000, "threads": 2}),
    *(
        ("stream", f"stream/stream.5.10.{build}.out", {"elements": 2000000, "threads": 2})
        for build in ("verbose", "float", "float-verbose")
    ),
    ("stream", "stream/ours.out", {"elements": 2000000, "repetitions": 5}),
    ("hpcc", "hpcc/hpccoutf.N1000.np2.txt", HPCC),
    ("hpcg", "hpcg/HPCG-Benchmark_3.1.txt", HPCG),
    ("hpcg", "hpcg/HPCG-Benchmark-3.0.yaml", HPCG),
    ("hpcg", "hpcg/intel.3.1.txt", HPCG),
    ("hpcg", "hpcg/nvidia.3.1.txt", HPCG),
    ("ior", "ior/easy.3.3.0.out", IOR),
    ("ior", "ior/easy.4.0.0.out", IOR),
    ("ior", "ior/hard.3.3.0.json", IOR_JSON),
    ("ior", "ior/hard.4.0.0.json", IOR_JSON),
    ("mdtest", "mdtest/both.3.3.0.out", MDTEST),
    ("mdtest", "mdtest/both.4.1.0.out", MDTEST),
    ("mdtest", "mdtest/files.4.1.0.out", {**MDTEST, "kind": "files"}),
    ("mdtest", "mdtest/files.4.0.0.out", {**MDTEST, "kind": "files"}),
    ("io500", "io500/invalid.out", IO500),
    ("osu", "osu/latency.5.out", {**OSU, "repetitions": 2}),
    *(("osu", f"osu/{name}.out", OSU) for name in OSU_FILES),
    *(("osu", f"osu/IMB-{name}.out", {**OSU, **given}) for name, given in IMB.items()),
    ("fio", "fio/randrw.3.33.json", {**FIO, "rw": "randrw"}),
    ("fio", "fio/two_groups.3.33.json", {"job_file": "/opt/two_groups.fio"}),
    ("iozone", "iozone/throughput.3.471.out", IOZONE),
    ("iozone", "iozone/throughput.3.507.out", IOZONE_2),
    ("iozone", "iozone/auto.3.471.out", IOZONE_AUTO),
    ("iozone", "iozone/auto.3.420.out", IOZONE_AUTO),
    ("xrootd", "xrootd/analysis.out", {"mode": "analysis", **XROOTD}),
    ("xrootd", "xrootd/xrdcp.out", {"mode": "xrdcp", **XROOTD}),
    ("xrootd", "xrootd/local.out", {"mode": "local", **XROOTD}),
    ("roottree", "roottree/jagged.out", {"events": 3000, "cluster": 1000, "iterations": 2}),
    ("filesystem", "filesystem/large_file_copy.out", {"test": "large_file_copy", **SMALL}),
    ("filesystem", "filesystem/small_file_copy.out", {"test": "small_file_copy", **SMALL}),
    ("filesystem", "filesystem/small_file_write.out", {"test": "small_file_write", **SMALL}),
]
IDS = [f"{name} {file}" for name, file, _ in GOOD]
FSTEST = ("filesystem", "filesystem/small_file_copy.out", {"test": "small_file_copy", **SMALL})


def parse(folder: Path, name: str, text: str | bytes, given: Given) -> list[Result]:
    data = text.encode() if isinstance(text, str) else text
    (folder / "out.0").write_bytes(data)
    return load(name).parse(folder, 0, given)


def refusal(folder: Path, name: str, text: str | bytes, given: Given) -> str:
    with pytest.raises((OutputError, FailedError)) as caught:
        parse(folder, name, text, given)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def read(file: str) -> str:
    return (DATA / file).read_text(encoding="utf-8")


# --- good output ---


def test_hpcc_gives_the_six_digits_of_its_summary(tmp_path: Path) -> None:
    found = parse(tmp_path, "hpl", read("hpcc/hpccoutf.N1000.np2.txt"), HPCC)
    assert [(r.metric, r.unit, r.iteration) for r in found] == [
        ("gflops", "Gflop/s", 1),
        ("hpl_s", "s", 1),
        ("residual", "1", 1),
    ]
    assert found[0].value == pytest.approx(22.021)
    assert found[1].value == 0.0303423
    assert found[2].value == pytest.approx(0.0036, rel=0.2)


def test_xhpl_time_comes_from_its_rate_because_it_prints_hundredths(tmp_path: Path) -> None:
    found = parse(tmp_path, "hpl", read("hpl/N1000.np2.NB64.out"), XHPL)
    # 2/3 * 1000^3 + 3/2 * 1000^2 = 668.1667e6 operations at 8.8125 Gflop/s
    assert found[0].value == 8.8125
    assert found[1].value == pytest.approx(0.0758203, rel=1e-5)
    assert found[2].value == 3.98750446e-03


def test_fstest_gives_three_figures_per_iteration(tmp_path: Path) -> None:
    found = parse(tmp_path, "filesystem", read(FSTEST[1]), FSTEST[2])
    first = [r for r in found if r.iteration == 1]
    assert [r.metric for r in first] == ["seconds", "throughput", "files_per_s"]
    assert first[0].value == 0.019321328
    assert first[1].value == pytest.approx(51200 / 0.019321328)
    assert first[2].value == pytest.approx(50 / 0.019321328)
    assert [r.iteration for r in found] == [1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_times_with_a_process_for_each_file_have_a_name_of_their_own(tmp_path: Path) -> None:
    _, file, given = FSTEST
    text = read(file).replace("}", ',"process":"each","keep":true}', 1)
    given = {**given, "process": "each", "overwrite": True}
    found = parse(tmp_path, "filesystem", text, given)
    assert [r.metric for r in found[:3]] == ["seconds_by_processes", "throughput", "files_per_s"]
    words = refusal(tmp_path, "filesystem", read(file), given)
    assert words == "out.0 line 1: process is 'one' instead of 'each'"


def test_results_are_the_described_ones(tmp_path: Path) -> None:
    for name, file, given in GOOD:
        specs = registry.load(name).results
        for found in parse(tmp_path, name, read(file), given):
            assert specs[found.metric].unit == found.unit


# --- damaged output ---


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "file", "given"), GOOD, ids=IDS)
def test_no_prefix_of_a_good_output_gives_a_number(
    tmp_path: Path, name: str, file: str, given: Given
) -> None:
    out = tmp_path / "out.0"
    shutil.copyfile(DATA / file, out)
    benchmark = registry.load(name)
    assert benchmark.parse(tmp_path, 0, given)
    whole = out.stat().st_size
    # Every length of the last lines, the end of each line of the last 4 kB, and 60 before.
    ends = [at for at, byte in enumerate(out.read_bytes()) if byte == ord("\n")]
    ends = [end + more for end in ends if end > whole - 4000 for more in (0, 1)]
    lengths = {*range(max(whole - 200, 0), whole), *ends, *spread(whole)} - {whole}
    for length in sorted(lengths, reverse=True):
        os.truncate(out, length)
        with pytest.raises((OutputError, FailedError)):
            benchmark.parse(tmp_path, 0, given)


def spread(size: int, most: int = 60) -> range:
    """Places in an output; of a long one every n-th, with n odd, so that all columns are met."""
    return range(0, size, size // most | 1)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "file", "given"), GOOD, ids=IDS)
def test_a_lost_or_doubled_line_never_changes_a_number(
    tmp_path: Path, name: str, file: str, given: Given
) -> None:
    lines = read(file).splitlines(keepends=True)
    right = parse(tmp_path, name, "".join(lines), given)
    for i in spread(len(lines)):
        for damaged in (lines[:i] + lines[i + 1 :], lines[: i + 1] + lines[i:]):
            try:
                assert parse(tmp_path, name, "".join(damaged), given) == right
            except (OutputError, FailedError):
                continue


@pytest.mark.parametrize(("name", "file", "given"), GOOD, ids=IDS)
def test_two_outputs_in_one_file_are_refused(
    tmp_path: Path, name: str, file: str, given: Given
) -> None:
    refusal(tmp_path, name, read(file) * 2, given)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "file", "given"), GOOD, ids=IDS)
def test_noise_in_any_place_is_refused_or_harmless(
    tmp_path: Path, name: str, file: str, given: Given
) -> None:
    data = (DATA / file).read_bytes()
    right = parse(tmp_path, name, data, given)
    for at in spread(len(data)):
        for noise in (b"\x00", b"\xff", b"x"):
            try:
                found = parse(tmp_path, name, data[:at] + noise + data[at + 1 :], given)
            except (OutputError, FailedError):
                continue
            assert found == right


@pytest.mark.thorough
def test_the_output_of_another_benchmark_is_refused(tmp_path: Path) -> None:
    for name, _, given in GOOD:
        for other, file, _ in GOOD:
            if other != name and {name, other} != SAME_PROGRAM:
                refusal(tmp_path, name, read(file), given)


def test_absent_empty_and_unreadable_output(tmp_path: Path) -> None:
    benchmark = registry.load("hpl")
    with pytest.raises(OutputError, match=r"^out\.3: cannot be read: No such file"):
        benchmark.parse(tmp_path, 3, {})
    assert refusal(tmp_path, "hpl", "", {}) == "out.0: empty: hpcc printed nothing"
    words = "out.0: cut short: the end is missing; the last line is '\ufffd\ufffd'"
    assert refusal(tmp_path, "hpl", b"\xff\xfe", {}) == words
    (tmp_path / "err.0").write_text("first\n mpirun: no slots \n\n", encoding="utf-8")
    assert refusal(tmp_path, "hpl", " \n", {}) == "hpcc printed nothing and said: mpirun: no slots"


# --- HPL's own failures ---


def test_a_failed_residual_is_a_failed_benchmark(tmp_path: Path) -> None:
    text = read("hpl/N1000.np2.FAILED-threshold.out")
    with pytest.raises(FailedError, match="residual check failed: 3.98750446e-03"):
        parse(tmp_path, "hpl", text, {**XHPL, "threshold": 0.0})


def test_hpcc_that_solved_a_problem_of_its_own_is_refused(tmp_path: Path) -> None:
    text = read("hpcc/hpccoutf.badgrid.txt")
    assert re.search("^Success=1$", text, re.MULTILINE)
    words = refusal(tmp_path, "hpl", text, {"n": 1000, "nb": 80, "p": 2, "q": 2})
    assert "(3520, 80, 1, 2) was solved instead of (1000, 80, 2, 2)" in words


THESIS: Given = {
    "xhpl": "/opt/xhpl",
    "n": 494,
    "nb": 16,
    "q": 4,
    "pfact": "left crout right",
    "rfact": "left crout right",
    "nbmin": "2 4 6",
    "bcast": "1ring",
    "depth": 0,
}
SYSTEMS = "hpl/N494.np4.27systems.out"


def test_the_27_systems_of_the_thesis_are_one_run(tmp_path: Path) -> None:
    found = parse(tmp_path, "hpl", read(SYSTEMS), THESIS)
    rates = [r.value for r in found if r.metric == "system_gflops"]
    lines = re.findall(r"^WR00\S+ .* (\S+)$", read(SYSTEMS), re.MULTILINE)
    assert rates == [float(line) for line in lines]
    assert len(rates) == 27
    one = {r.metric: r.value for r in found}
    assert one["gflops"] == max(rates) == rates[int(one["best_system"]) - 1]
    assert one["mean_gflops"] == pytest.approx(sum(rates) / 27)


TWO = "hpl/N1000.np2.openblas-serial.out"
XHPL_TWO: Given = {**XHPL, "nb": "16 64"}


def test_two_systems_where_one_was_asked_for_are_refused(tmp_path: Path) -> None:
    words = refusal(tmp_path, "hpl", read(TWO), XHPL)
    assert "(n, nb, p, q) = (1000, 16, 1, 2) was solved instead of (1000, 64, 1, 2)" in words


def test_of_two_systems_each_is_told_and_the_fastest_is_the_run_s(tmp_path: Path) -> None:
    found = {(r.metric, r.iteration): r.value for r in parse(tmp_path, "hpl", read(TWO), XHPL_TWO)}
    assert found[("gflops", 1)] == found[("system_gflops", 1)] == 19.523
    assert found[("system_gflops", 2)] == 8.8125
    assert found[("best_system", 1)] == 1
    assert found[("mean_gflops", 1)] == pytest.approx((19.523 + 8.8125) / 2)
    assert found[("residual", 1)] == found[("system_residual", 2)] == 3.98750446e-03
    assert found[("system_residual", 1)] == 3.74884414e-03
    assert found[("hpl_s", 1)] == pytest.approx(668.1667e6 / 19.523e9, rel=1e-6)
    assert len(found) == 9


def test_a_system_that_failed_fails_the_run(tmp_path: Path) -> None:
    text = read(TWO).replace("3.98750446e-03 ...... PASSED", "3.98750446e+03 ...... FAILED")
    words = refusal(tmp_path, "hpl", text, XHPL_TWO)
    assert words == "HPL's residual check failed in 1 of 2 systems, WR11C2R4 with 3.98750446e+03"


def test_a_system_that_is_missing_or_another_one_is_refused(tmp_path: Path) -> None:
    words = refusal(tmp_path, "hpl", read(TWO), {**XHPL_TWO, "rfact": "crout left"})
    assert words == (
        "out.0: 2 systems were solved, 4 were asked for, WR11L2R4 with NB 16 is missing"
    )
    words = refusal(tmp_path, "hpl", read(TWO), {**XHPL_TWO, "depth": 0})
    assert words == (
        "out.0: 2 systems were solved, 2 were asked for, WR01C2R4 with NB 16 is missing"
    )


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("3.98750446e-03", "nan", "residual"),
        ("8.8125e+00", "inf", "not one each"),
        ("8.8125e+00", "9.8125e-00", "do not go together|not one each"),
        ("8.8125e+00", "8.8125e+99", "cannot be"),
        ("8.8125e+00", "0.0000e+00", "cannot be"),
        ("8.8125e+00", "8.8.8", "not one each|no number"),
        ("0.08 ", "9.08 ", "do not go together"),
        ("PASSED", "FAILED", "residual check failed"),
        ("PASSED", "PASS", "not one each"),
    ],
)
def test_figures_of_hpl_that_cannot_be(tmp_path: Path, old: str, new: str, words: str) -> None:
    text = read("hpl/N1000.np2.NB64.out")
    assert text.count(old) == 1
    changed = text.replace(old, new)
    if new == "nan":
        # xhpl prints a residual that is no number as FAILED; one that passed must not be believed.
        changed = changed.replace("PASSED", "FAILED")
    assert re.search(words, refusal(tmp_path, "hpl", changed, XHPL))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("Success=1", "Success=0", "hpcc says Success=0"),
        ("HPL_Tflops=0.022021", "HPL_Tflops=0.032021", "in the summary"),
        ("HPL_time=0.0303423", "HPL_time=1.0303423", "do not go together"),
        ("HPL_time=0.0303423", "HPL_zeit=0.0303423", "no HPL_time"),
        ("HPL_Tflops=0.022021", "HPL_Tflops=nan", "'nan' cannot be"),
    ],
)
def test_a_summary_of_hpcc_that_contradicts_its_table(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    text = read("hpcc/hpccoutf.N1000.np2.txt")
    assert text.count(old) == 1
    assert words in refusal(tmp_path, "hpl", text.replace(old, new), HPCC)


# --- the file-system tests' failures ---


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"steelyard_fstest":1', '"steelyard_fstest":2', "not version 1"),
        ('"sync":"each"', '"sync":"none"', "sync is 'none' instead of 'each'"),
        ('"files":50,"file_bytes"', '"files":51,"file_bytes"', "files is 51 instead of 50"),
        ('"seconds":0.019321328', '"seconds":0', "seconds is 0, which cannot be"),
        ('"seconds":0.019321328', '"seconds":-1', "seconds is -1, which cannot be"),
        ('"seconds":0.019321328', '"seconds":NaN', "seconds is nan, which cannot be"),
        ('"seconds":0.019321328', '"seconds":' + "9" * 400, "which cannot be"),
        ('"seconds":0.019321328', '"seconds":"1"', "seconds is '1', a number is needed"),
        ('"seconds":0.019321328', '"seconds":true', "seconds is True, a number is needed"),
        ('"seconds":0.019321328,', "", "seconds is None, a number is needed"),
        ('"iteration":2', '"iteration":3', "iteration 2 expected, found 3"),
        ('"end":true', '"end":false', "cut short after 3 iterations"),
        ('{"iteration":2', "[" * 100000, "no JSON"),
        ('{"iteration":2', "2 ", "no JSON"),
    ],
)
def test_figures_of_fstest_that_cannot_be(tmp_path: Path, old: str, new: str, words: str) -> None:
    _, file, given = FSTEST
    text = read(file)
    assert old in text
    assert words in refusal(tmp_path, "filesystem", text.replace(old, new, 1), given)


def test_fewer_iterations_than_asked_for(tmp_path: Path) -> None:
    _, file, given = FSTEST
    text = re.sub(r'{"iteration":3.*\n', "", read(file)).replace(
        '"end":true,"iterations":3', '"end":true,"iterations":2'
    )
    words = refusal(tmp_path, "filesystem", text, given)
    assert words == "out.0: 2 iterations instead of 3"


def test_a_parser_that_gives_what_is_not_described_is_a_bug_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from steelyard.jobscripts.hpl import parse as module

    invented: Callable[..., list[Result]] = lambda *_: [Result("speed", 1.0, "m/s", 1)]
    monkeypatch.setattr(module, "parse", invented)
    with pytest.raises(registry.DescriptionError, match="'speed' in m/s, which is not described"):
        registry.load("hpl").parse(tmp_path, 0, {})


def test_mdtest_4_1_prints_seconds_that_it_calls_ms_per_operation(tmp_path: Path) -> None:
    found = parse(tmp_path, "mdtest", read("mdtest/files.4.1.0.out"), {**MDTEST, "kind": "files"})
    assert found[0] == Result("file_create", 1722.289, "files_per_s", 1)  # 400 files in 0.232 s
