"""fio, IOzone, HPCC, HPL's algorithm and commands of the user's: figures, refusals, failures."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from steelyard.jobscripts import registry
from steelyard.jobscripts.registry import FailedError, OutputError, ParameterError

DATA = Path(__file__).parents[2] / "data"

load = functools.cache(registry.load)  # a parser reads thousands of outputs here
FIO: dict[str, object] = {"bs": 4096, "size": "2MiB", "numjobs": 2}
HPCC: dict[str, object] = {"n": 1000, "nb": 80, "q": 2}
FIGURES = {
    "rate": {"pattern": r"^rate = ([0-9.e+]+)", "unit": "Gflop/s", "better": "higher"},
    "steps": {"pattern": r"(\d+) steps", "unit": "1"},
}


def read(file: str) -> str:
    return (DATA / file).read_text(encoding="utf-8")


def parse(folder: Path, name: str, text: str, given: dict[str, object]) -> dict[str, list[float]]:
    (folder / "out.0").write_text(text, encoding="utf-8")
    found: dict[str, list[float]] = {}
    for result in load(name).parse(folder, 0, given):
        found.setdefault(result.metric, []).append(result.value)
    return found


# --- hpcc ---


def test_every_figure_of_hpccs_summary_is_described_or_known_to_be_none(tmp_path: Path) -> None:
    text = read("hpcc/hpccoutf.N1000.np2.txt")
    keys = re.findall(r"^(\w+)=", text.partition("Begin of Summary")[2], re.MULTILINE)
    described = registry.load("hpcc").results
    # Sizes, grids, constants of the machine and of the build.
    setting = re.compile(
        r"Version.*|LANG|Success|sizeof_.*|CommWorldProcs|MPI_Wtick|HPL_(?!Tflops|time).*|.weps"
        r"|HPLM..Procs|DGEMM_N|PTRANS_(n|nb|nprow|npcol)|.*_N|.*_TimeBound|.*_Algorithm"
        r"|STREAM_.*|MPIFFT_Procs|FFTE.*|M_OPENMP|omp_.*|Mem(Proc|Spec|Val)|CPS_.*"
    )
    for key in keys:
        assert (key.lower() in described) != bool(setting.fullmatch(key)), key
    found = parse(tmp_path, "hpcc", text, HPCC)
    assert set(found) == set(described)
    assert found["mpirandomaccess_gups"] == [0.00164276]
    assert found["minpingpongbandwidth_gbytes"] == [12.3517]


def test_on_one_rank_hpcc_measures_no_ping_pong(tmp_path: Path) -> None:
    found = parse(tmp_path, "hpcc", read("hpcc/hpccoutf.N200.np1.txt"), {"n": 200, "nb": 64})
    assert "maxpingponglatency_usec" not in found
    assert found["starfft_gflops"] == [9.68639]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("524288 locations (passed)", "524288 locations (failed)", "MPIRandomAccess of hpcc does"),
        ("    0 tests completed and failed", "    1 tests completed and failed", "PTRANS of hpcc"),
        ("    5 tests completed and passed", "    0 tests completed and passed", "PTRANS of hpcc"),
        ("Solution Validates", "Failed Validation", "StarSTREAM of hpcc does not say"),
        ("Node(s) with error 0", "Node(s) with error 1", "StarRandomAccess of hpcc"),
        ("Begin of StarFFT section", "Begin of StarFFT", "not exactly one section StarFFT"),
        ("SingleSTREAM_Triad=82.4365", "SingleSTREAM_Triad=nan", "singlestream_triad: 'nan'"),
        ("PTRANS_GBs=", "PTRANS_GB=", "the summary has no ptrans_gbs"),
        ("Success=1", "Success=0", "hpcc says Success=0"),
    ],
)
def test_a_test_of_hpcc_that_did_not_pass(tmp_path: Path, old: str, new: str, words: str) -> None:
    text = read("hpcc/hpccoutf.N1000.np2.txt")
    assert old in text
    with pytest.raises((FailedError, OutputError), match=re.escape(words)):
        parse(tmp_path, "hpcc", text.replace(old, new, 1), HPCC)


# --- HPL's algorithm and memory ---


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"pmap": "column"}, "variant WR11C2R4 was run instead of WC11C2R4"),
        ({"depth": 0, "bcast": "longM"}, "instead of WR05C2R4"),
        ({"rfact": "left", "ndiv": 3}, "instead of WR11L3R4"),
        ({"pfact": "crout", "nbmin": 8}, "instead of WR11C2C8"),
        ({"swap": "long"}, r"SWAP was 'Mix \(threshold = 64\)' instead of 'Spread-roll"),
        ({"swap_threshold": 80}, r"instead of 'Mix \(threshold = 80\)'"),
        ({"l1": "no-transposed"}, "L1 was 'transposed form' instead of 'no-transposed form'"),
        ({"equilibration": False}, "EQUIL was 'yes' instead of 'no'"),
        ({"alignment": 4}, "ALIGN was '8 double precision words' instead of '4 "),
    ],
)
def test_another_algorithm_than_asked_for(
    tmp_path: Path, given: dict[str, object], words: str
) -> None:
    with pytest.raises(OutputError, match=words):
        parse(tmp_path, "hpl", read("hpcc/hpccoutf.N1000.np2.txt"), {**HPCC, **given})


def test_n_of_a_share_of_memory_is_that_of_the_input_file(tmp_path: Path) -> None:
    given: dict[str, object] = {"memory": "50%", "nb": 80, "q": 2}
    text = read("hpcc/hpccoutf.N1000.np2.txt")
    with pytest.raises(OutputError, match=r"hpl\.0\.dat: does not say which n"):
        parse(tmp_path, "hpl", text, given)
    (tmp_path / "hpl.0.dat").write_text("a\nb\nc\nd\ne\n1000  Ns\n", encoding="ascii")
    assert parse(tmp_path, "hpl", text, given)["hpl_s"] == [0.0303423]
    (tmp_path / "hpl.0.dat").write_text("a\nb\nc\nd\ne\n2000  Ns\n", encoding="ascii")
    with pytest.raises(OutputError, match="was solved instead of"):
        parse(tmp_path, "hpl", text, given)


@pytest.mark.parametrize("memory", ["100%", "0%", "80", "-5%", "8e1%", "80% "])
def test_a_share_of_memory_that_is_none(memory: str) -> None:
    with pytest.raises(ParameterError, match='a share below 100%, such as "80%"'):
        registry.load("hpl").check_parameters({"memory": memory})


# --- fio ---


def test_fio_that_failed_says_why_before_its_json(tmp_path: Path) -> None:
    text = read("fio/cannot_open.3.33.json")
    with pytest.raises(FailedError, match=r"error 13: fio: pid=0, err=13/.*Permission denied"):
        parse(tmp_path, "fio", text, {"job_file": "/x"})


def test_of_several_groups_there_are_no_percentiles(tmp_path: Path) -> None:
    document = json.loads(read("fio/two_groups.3.33.json"))
    document["jobs"].append(document["jobs"][1])
    document["jobs"][1]["read"]["clat_ns"]["mean"] = 1000.0
    text = json.dumps(document, indent=2) + "\n"
    found = parse(tmp_path, "fio", text, {"job_file": "/x"})
    assert "read_latency_p99" not in found
    assert found["write_latency_p50"] == [2.192e-06]
    assert found["read_iops"] == [2 * 256000.0]


def change_section(job: dict[str, Any], **values: float) -> dict[str, Any]:
    """Return the job with other values in its section `read`."""
    return {**job, "read": {**job["read"], **values}}


def test_rates_of_groups_one_after_another_are_not_added(tmp_path: Path) -> None:
    """A sequential read of 100 MB in 1 s, then a random one of 10 MB in 4 s, behind a stonewall."""
    document = json.loads(read("fio/two_groups.3.33.json"))
    fast = change_section(
        document["jobs"][1],
        io_bytes=10**8,
        total_ios=1000,
        bw_bytes=10**8,
        iops=1000.0,
        runtime=1000,
    )
    slow = change_section(
        fast, io_bytes=10**7, total_ios=400, bw_bytes=2_500_000, iops=100.0, runtime=4000
    )
    document["jobs"] = [fast, {**slow, "groupid": 2}]
    found = parse(tmp_path, "fio", json.dumps(document) + "\n", {"job_file": "/x"})
    assert found["read_bandwidth"] == found["bandwidth"] == [110e6 / 5]
    assert found["read_iops"] == found["iops"] == [1400 / 5]
    document["jobs"] = [fast, {**slow, "groupid": fast["groupid"]}]  # at once
    found = parse(tmp_path, "fio", json.dumps(document) + "\n", {"job_file": "/x"})
    assert found["read_bandwidth"] == [110e6 / 4]
    document["jobs"] = [{**fast, "job_start": 7}, {**slow, "groupid": 2, "job_start": 7}]
    with pytest.raises(OutputError, match=r"at once \(new_group\)"):
        parse(tmp_path, "fio", json.dumps(document) + "\n", {"job_file": "/x"})


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"rw" : "read"', '"rw" : "write"', "rw is 'write' instead of 'read'"),
        ('"direct" : "0"', '"direct" : "1"', "direct is '1' instead of '0'"),
        ('"iops" : 27675.675676', '"iops" : NaN', "iops is nan, which cannot be"),
        ('"iops" : 27675.675676', '"iops" : 0', "iops is 0, which cannot be"),
        ('"iops" : 27675.675676', '"iops" : true', "iops is True, a number is needed"),
        ('"fio version" : "fio-3', '"version" : "fio-3', "no 'fio version'"),
        ('"total_ios" : 1024', '"total_ios" : 0', "fio neither read nor wrote"),
    ],
)
def test_json_of_fio_that_cannot_be(tmp_path: Path, old: str, new: str, words: str) -> None:
    text = read("fio/read.3.33.json")
    assert old in text
    with pytest.raises((OutputError, FailedError), match=re.escape(words)):
        parse(tmp_path, "fio", text.replace(old, new, 1), FIO)


# --- IOzone ---


def test_older_words_of_iozone(tmp_path: Path) -> None:
    # iozone.c 3.3 and 3.4 print `Kbyte`, `KB/sec`, and with -T `thread`.
    text = read("iozone/throughput.3.471.out")
    given: dict[str, object] = {
        "tests": "0 1 2 3 4 5 6 7",
        "processes": 2,
        "size": "4MiB",
        "record": "64KiB",
    }
    right = parse(tmp_path, "iozone", text, given)
    assert right["rewrite"] == [2810950.25 * 1024]
    old = text.replace("kB/sec", "KB/sec").replace(" kByte ", " Kbyte ")
    assert old.count("KB/sec") > 40
    assert parse(tmp_path, "iozone", old, given) == right
    assert parse(tmp_path, "iozone", old.replace("Each process", "Each thread"), given) == right
    with pytest.raises(OutputError, match="figures of"):
        parse(tmp_path, "iozone", text.replace("kB/sec", "ops/sec"), given)


def test_iozone_that_cannot_open_its_file(tmp_path: Path) -> None:
    with pytest.raises(FailedError, match="iozone says: Can not open temp file: /nodir/x"):
        parse(tmp_path, "iozone", read("iozone/cannot_open.out"), {"tests": "0"})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"direct": True}, "-I is not in its command line"),
        ({"sync": False}, "-e is in its command line"),
        ({"record": "128KiB"}, r"\(file, record\) in kB is"),
        ({"processes": 3}, "'2 initial writers' was not requested"),
        ({"tests": "0 1 2"}, r"figures of \['read', 'reread', 'rewrite', 'write'\] instead of"),
        ({"mode": "auto"}, r"\(file, record\) in kB are"),
    ],
)
def test_iozone_that_did_something_else(
    tmp_path: Path, given: dict[str, object], words: str
) -> None:
    asked = {"tests": "0 1", "processes": 2, "size": "32MiB", "record": "64KiB", **given}
    with pytest.raises(OutputError, match=words):
        parse(tmp_path, "iozone", read("iozone/throughput.3.507.out"), asked)


def test_auto_mode_has_an_iteration_for_each_pair_of_sizes(tmp_path: Path) -> None:
    text = read("iozone/fixed.3.507.out")
    given: dict[str, object] = {"mode": "auto", "tests": "0 1 2", "record": "4KiB"}
    asked = {**given, "most_record": "4KiB"}
    one = re.sub(r"^ +65536    1024 .*\n", "", text, flags=re.MULTILINE)
    assert parse(tmp_path, "iozone", one, asked)["random_write"] == [1131493 * 1024]
    with pytest.raises(OutputError, match=r"kB are \[\(65536, 4\), \(65536, 1024\)\] instead"):
        parse(tmp_path, "iozone", text, asked)


# --- app ---
missing: dict[str, str] = {}  # figures of the study's own, and why, at the last app()


def app(folder: Path, text: str, times: str = "0 1000000 3500000 - -\n") -> dict[str, list[float]]:
    (folder / "app.0").write_text(times, encoding="ascii")
    given: dict[str, object] = {"command": "x", "figures": FIGURES}
    found = parse(folder, "app", text, given)
    own = load("app").own_figures(folder, 0, load("app").check_parameters(given))
    for result in own.results:
        found.setdefault(result.metric, []).append(result.value)
    missing.clear()
    missing.update(own.missing)
    return found


def test_figures_of_a_command_are_found_by_their_patterns(tmp_path: Path) -> None:
    found = app(tmp_path, "start\nrate = 1.5e+1\nrate = 16\n12 steps done\n")
    assert found == {"seconds": [2.5], "rate": [15.0, 16.0], "steps": [12.0]}


def test_what_a_figure_means_is_as_the_study_says() -> None:
    main = {**FIGURES, "steps": {**FIGURES["steps"], "primary": False}}
    specs = registry.load("app").specs({"command": "x", "figures": main})
    assert (specs["rate"].unit, specs["rate"].better, specs["rate"].primary) == (
        "Gflop/s",
        "higher",
        True,
    )
    assert specs["steps"].better is None
    assert (specs["steps"].primary, specs["seconds"].primary) == (False, True)


@pytest.mark.parametrize(
    ("text", "times", "words"),
    [
        ("rate = 1\n12 steps\n", "3 1 2 - -\n", "the command ended with 3"),
        ("rate = 1\n12 steps\n", "0 2 1 - -\n", "a time of -1"),
        ("rate = 1\n12 steps\n", "0 1 2 -", "not 'code start end uptime uptime'"),
    ],
)
def test_a_command_that_failed(tmp_path: Path, text: str, times: str, words: str) -> None:
    with pytest.raises((OutputError, FailedError), match=re.escape(words)):
        app(tmp_path, text, times)


@pytest.mark.parametrize(
    ("text", "found", "words"),
    [
        ("12 steps\n", {"steps": [12.0]}, {"rate": "rate: nothing matches"}),
        ("rate = 1.2.3\n12 steps\n", {"steps": [12.0]}, {"rate": "rate: '1.2.3' is no number"}),
        ("rate = 1e+999\n12 steps\n", {"steps": [12.0]}, {"rate": "rate: '1e+999' cannot be"}),
        ("", {}, dict.fromkeys(FIGURES, "the command printed nothing")),
    ],
)
def test_a_figure_that_is_not_found_fails_no_run(
    tmp_path: Path, text: str, found: dict[str, list[float]], words: dict[str, str]
) -> None:
    assert app(tmp_path, text, "0 1000000 3500000 - -\n") == {"seconds": [2.5], **found}
    assert missing.keys() == words.keys()
    assert all(words[name] in why for name, why in missing.items())


def test_a_clock_that_was_set_meanwhile_does_not_count(tmp_path: Path) -> None:
    found = app(tmp_path, "rate = 1\n1 steps\n", "0 5000000 1000000 700000 2700000\n")
    assert found["seconds"] == [2.0]


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        (1, "a table NAME = {pattern, unit, better} is needed"),
        ("{", "no JSON"),
        ({"Rate": {}}, "'Rate': a figure's name is lower-case"),
        ({"energy_j": {}}, "energy_j: every run has a figure of this name"),
        ({"seconds": {}}, "seconds: every run has a figure of this name"),
        ({"a": 1}, "a: a table {pattern, unit, better} is needed"),
        ({"a": {"pattern": "(1)", "unit": "1", "sort": 1}}, "a.sort: unknown key"),
        ({"a": {"pattern": "(1)"}}, 'a.unit: a unit is needed ("1" for none)'),
        ({"a": {"unit": "s"}}, "a.pattern: a regular expression is needed"),
        ({"a": {"pattern": "(", "unit": "s"}}, "a.pattern: '('"),
        ({"a": {"pattern": "a", "unit": "s"}}, "has 0 groups: exactly one is needed"),
        ({"a": {"pattern": "(a)", "unit": "s", "better": "more"}}, "a.better: 'more' is none of"),
        ({"a": {"pattern": "(a)", "unit": "s", "primary": 1}}, "a.primary: true or false"),
    ],
)
def test_a_table_of_figures_that_is_wrong(figures: object, words: str) -> None:
    with pytest.raises(ParameterError, match=re.escape(words)):
        registry.load("app").check_parameters({"figures": figures})


def figure(folder: Path, text: str, pattern: str, **more: object) -> list[float]:
    """What one pattern finds in what a command printed."""
    (folder / "app.0").write_text("0 1000000 3500000 - -\n", encoding="ascii")
    figures = {"rate": {"pattern": pattern, "unit": "1", **more}}
    given: dict[str, object] = {"command": "x", "figures": figures}
    parse(folder, "app", text, given)
    own = load("app").own_figures(folder, 0, load("app").check_parameters(given))
    if own.missing:
        raise OutputError("out.0", own.missing["rate"])
    return [result.value for result in own.results]


@pytest.mark.parametrize(
    ("text", "pattern", "words"),
    [
        ("x=nan\nx=5\n", "x=([0-9.]+)", "'x=nan' has no number"),
        ("x=5 s\nx=-Inf s\n", "^x=([0-9.]+) s$", "'x=-Inf s' has no number"),
        ("x=5\nx=*******\n", "x=([0-9.]+)", "'x=*******' has no number"),
        ("rate 5.5k\n", "rate ([0-9.]+)", "takes '5.5' out of '5.5k'"),
        ("rate 0x10\n", "rate ([0-9.]+)", "takes '0' out of '0x10'"),
        ("rate 5.5µs\n", "rate ([0-9.]+)", "takes '5.5' out of '5.5µs'"),
        ("d = −5.5\n", "d = .?([0-9.]+)", "takes '5.5' out of '−5.5'"),
        ("rate 1.1 GB/s\nrate 950 MB/s\n", "rate ([0-9.]+)", "'rate 1.1 GB/s' and 'rate 950 MB/s'"),
        ("rate 1.1GB/s\nrate 950MB/s\n", "rate ([0-9.]+)[KMG]B/s", "different units"),
        ("rate 1.1 GB/s\nrate 950 MB/s\n", "rate ([0-9.]+) MB/s", "'rate 1.1 GB/s' is left out"),
        ("took 5 ms\ntook 1 second\n", "took ([0-9.]+)", "'took 5 ms' and 'took 1 second'"),
        ("took 5 min\ntook 6 s\n", "took ([0-9.]+)", "different units"),
        ("size 4.0K\nsize 12\n", "size ([0-9.]+)[KMG]?", "different units"),
        ("size 4.0 K\nsize 12\n", "size ([0-9.]+)", "'size 4.0 K' and 'size 12'"),
    ],
)
def test_numbers_of_a_figure_that_may_not_be_averaged(
    tmp_path: Path, text: str, pattern: str, words: str
) -> None:
    with pytest.raises(OutputError, match=re.escape(words)):
        figure(tmp_path, text, pattern)


@pytest.mark.parametrize(
    ("text", "pattern", "right"),
    [
        ("rate 5.5ms\nrate 6ms\n", "rate ([0-9.]+)ms", [5.5, 6]),
        ("rate 5.5x\n", r"rate ([0-9.]+)\w", [5.5]),
        ("rate 1.1 GB/s\nrate 950 MB in all\n", "rate ([0-9.]+) GB/s", [1.1]),
        ("took 1 second\ntook 2 seconds\n", "took ([0-9.]+)", [1, 2]),
        ("rate 5 at step 1\nrate 6 in step 2\n", "rate ([0-9.]+)", [5, 6]),
        ("rate table\nrate 5\n", "rate ([0-9.]+)", [5]),
        ("a=1 b=2\n", "(?:a|b)=([0-9.]+)", [1, 2]),
        ("x_0 = 5\n", "= ([0-9.]+)", [5]),
    ],
)
def test_numbers_that_stand_beside_words(
    tmp_path: Path, text: str, pattern: str, right: list[float]
) -> None:
    assert figure(tmp_path, text, pattern) == right


def test_a_figure_says_how_many_numbers_it_has(tmp_path: Path) -> None:
    assert figure(tmp_path, "x=1\nx=2\n", "x=([0-9.]+)", count=2) == [1, 2]
    with pytest.raises(OutputError, match=r"rate: 1 numbers, count = 2 are expected"):
        figure(tmp_path, "x=1\nx=two\n", "x=([0-9.]+)", count=2)
    for wrong in (-1, True, "2"):
        with pytest.raises(ParameterError, match=r"rate\.count: a number of matches is needed"):
            figure(tmp_path, "x=1\n", "x=([0-9.]+)", count=wrong)
