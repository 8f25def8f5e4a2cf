"""HPCG, IOR, mdtest, the IO500, OSU's and Intel's MPI benchmarks by path: what their real outputs say, what is refused, and how they
are started (recorded programs stand in for them: they are in no package)."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from steelyard.jobscripts import registry
from steelyard.jobscripts.errors import FailedError, OutputError

from .conftest import Study

DATA = Path(__file__).parents[2] / "data"
MIB, GIB = 1 << 20, 1 << 30


@dataclass(frozen=True)
class Recorded:
    """An output, and the parameters that it belongs to."""

    benchmark: str
    file: str
    given: dict[str, object] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return (DATA / self.benchmark / self.file).read_text(encoding="utf-8")

    def parse(
        self, folder: Path, text: str | None = None, **more: object
    ) -> dict[str, list[float]]:
        (folder / "out.0").write_text(self.text if text is None else text, encoding="utf-8")
        found: dict[str, list[float]] = {}
        given = {"program": "/opt/own", **self.given, **more}
        for one in registry.load(self.benchmark).parse(folder, 0, given):
            found.setdefault(one.metric, []).append(one.value)
        return found


GRID: dict[str, object] = {"ranks": 2, "nx": 16, "ny": 24, "nz": 32, "seconds": 2}
HPCG = Recorded("hpcg", "HPCG-Benchmark_3.1.txt", GRID)
INTEL_HPCG = Recorded("hpcg", "intel.3.1.txt", GRID)
HPCG_YAML = Recorded("hpcg", "HPCG-Benchmark-3.0.yaml", GRID)
IOR_33 = Recorded("ior", "easy.3.3.0.out", {"ranks": 2, "repetitions": 3})
IOR_40 = Recorded("ior", "easy.4.0.0.out", {"ranks": 2, "repetitions": 3})
JSON: dict[str, object] = {"ranks": 2, "repetitions": 2, "summary": "json"}
IOR_JSON_33 = Recorded("ior", "hard.3.3.0.json", JSON)
IOR_JSON_40 = Recorded("ior", "hard.4.0.0.json", JSON)
MDTEST = Recorded("mdtest", "both.3.3.0.out", {"ranks": 2, "files": 200, "kind": "both"})
MDTEST_40 = Recorded("mdtest", "files.4.0.0.out", {"ranks": 2, "files": 200})
IO500 = Recorded("io500", "invalid.out", {"ranks": 2, "config": "/opt/a.ini", "invalid": True})

SIZES: dict[str, object] = {"smallest": 8, "largest": 64, "repetitions": 1}
OSU_LATENCY = Recorded("osu", "latency.5.out", {**SIZES, "repetitions": 2})
OSU_RATE = Recorded("osu", "mbw_mr.5.out", SIZES)
OSU_FULL = Recorded("osu", "allreduce_full.7.out", SIZES)
OSU_BARRIER = Recorded("osu", "barrier.5.out", SIZES)
PING_PONG = Recorded("osu", "IMB-PingPong.2017.out", {**SIZES, "test": "PingPong", "ranks": 2})
SENDRECV = Recorded("osu", "IMB-Sendrecv.2021.out", {**SIZES, "test": "Sendrecv", "ranks": 2})
ALLREDUCE = Recorded("osu", "IMB-Allreduce.2021.out", {**SIZES, "test": "Allreduce", "ranks": 4})

# --- their figures ---


def test_hpcg_gives_its_rating_and_what_it_is_made_of(tmp_path: Path) -> None:
    assert HPCG.parse(tmp_path) == {
        "gflops": [1.15456],
        "raw_gflops": [1.15948],
        "solve_s": [2.21053],
        "residual": [2.48153e-21],
    }
    assert HPCG_YAML.parse(tmp_path)["gflops"] == [0.0667481]


def test_ior_gives_every_repetition(tmp_path: Path) -> None:
    rates = {"write": [824.87, 938.34, 709.32], "read": [27576, 3210.23, 17968]}
    found = IOR_33.parse(tmp_path)
    assert found == {name: [MIB * one for one in rates[name]] for name in rates}
    assert IOR_JSON_33.parse(tmp_path)["write"] == [MIB * 447.2388, MIB * 659.3962]
    assert IOR_JSON_40.parse(tmp_path)["read"] == [MIB * 15867.6793, MIB * 1879.85]


def test_mdtest_gives_the_rate_of_the_slowest_rank(tmp_path: Path) -> None:
    """Of one iteration 3.3 prints the ranks' own: 400 files in the longest time, 0.570 s."""
    found = MDTEST.parse(tmp_path)
    assert found["file_create"] == [701.175] == [pytest.approx(400 / 0.570, rel=1e-3)]
    assert found["file_read"] == [4632.526]
    assert "directory_rename" not in found
    assert set(MDTEST_40.parse(tmp_path)) == {f"file_{one}" for one in OPERATIONS}


OPERATIONS = ("create", "stat", "read", "remove")


def test_the_io500s_score_is_that_of_its_phases(tmp_path: Path) -> None:
    found = IO500.parse(tmp_path)
    assert found["score"] == [5.537435] and found["valid"] == [0.0]
    assert found["ior_easy_write"] == [0.148076 * GIB]
    assert found["mdtest_hard_delete"] == [984.126]
    four = [
        found[f"ior_{one}"][0] for one in ("easy_write", "hard_write", "easy_read", "hard_read")
    ]
    assert found["bandwidth"][0] == pytest.approx(math.prod(four) ** 0.25, rel=1e-4)
    with pytest.raises(FailedError, match=r"INVALID: stonewall-time 1s != 300s"):
        IO500.parse(tmp_path, invalid=False)


def test_osu_latency_is_of_the_smallest_message_in_each_repetition(tmp_path: Path) -> None:
    assert OSU_LATENCY.parse(tmp_path) == {
        "latency_s": [pytest.approx(1.31e-6), pytest.approx(1.29e-6)]
    }


def test_osu_rates_and_collectives_are_of_the_largest_message(tmp_path: Path) -> None:
    assert OSU_RATE.parse(tmp_path) == {
        "bandwidth_bytes_per_s": [pytest.approx(242.57e6)],
        "messages_per_s": [3790123.45],
    }
    assert OSU_FULL.parse(tmp_path) == {
        "collective_s": [pytest.approx(3.61e-6)],
        "collective_max_s": [pytest.approx(4.11e-6)],
    }
    assert OSU_BARRIER.parse(tmp_path) == {"collective_s": [pytest.approx(12.57e-6)]}


def test_imb_rates_are_bytes_by_its_time(tmp_path: Path) -> None:
    """Whether the version prints MiB/s or MB/s as Mbytes/sec."""
    assert PING_PONG.parse(tmp_path) == {
        "latency_s": [pytest.approx(1.25e-6)],
        "bandwidth_bytes_per_s": [pytest.approx(64 / 1.66e-6)],
    }
    assert SENDRECV.parse(tmp_path)["bi_bandwidth_bytes_per_s"] == [pytest.approx(128 / 2.69e-6)]
    assert ALLREDUCE.parse(tmp_path) == {
        "collective_s": [pytest.approx(4.66e-6)],
        "collective_max_s": [pytest.approx(4.69e-6)],
    }


# --- what is refused ---


@pytest.mark.parametrize(
    ("recorded", "old", "new", "words"),
    [
        (HPCG, "rating of=1.15456", "rating of=1.25456", "is 1.25456, 1.15456 is expected"),
        (HPCG, "Total=2.21053", "Total=1.21053", "line 109: GFLOP/s Summary::Total with conv"),
        (HPCG, "Processes=2", "Processes=4", "Processes is 4 instead of 2"),
        (HPCG, "is VALID with a GFLOP/s rating of=1.15456", "is=INVALID.", "its result is INVALID"),
        (HPCG, "Local Domain Dimensions::nx=16", "Local Domain Dimensions::nx=32", "instead of 16"),
        (IOR_40, "1169.96", "1269.96", "4194304 bytes at 1269.96 MiB/s take"),
        (IOR_40, "20373.16", "21373.16", "mean 21373.16 MiB/s in the summary"),
        (IOR_40, "0.000518   1   ", "0.000518   2   ", "read 2: iteration 1 is expected"),
        (IOR_40, "\nFinished", "\nIncorrect data on read (3 errors found).\nFinished", "3 errors"),
        (IOR_JSON_40, '"bwMiB": 505.7003', '"bwMiB": 605.7003', "1880320 bytes at 605.7003 MiB/s"),
        (IOR_JSON_40, '"Finished"', '"Ended"', "cut short or damaged"),
        (MDTEST, "701.175", "601.175", "400 at 601.175 a second do not take 0.57 s"),
        (MDTEST, "(of 1 iterations)", "(of 2 iterations)", "expected are 'rate' and 'time' of 1"),
        (MDTEST_40, "2 tasks, 400 files", "2 tasks, 300 files", "instead of '2 tasks, 400 files'"),
        (OSU_LATENCY, "# OSU MPI Latency", "# OSU MPI_Put Latency", "Latency Test v5.6.3' is none that can be read"),
        (OSU_LATENCY, "MPI Latency", "MPI Iallreduce Latency", "OSU's test 'Iallreduce Latency' is none"),
        (OSU_RATE, "242.57", "142.57", "142.57 MB/s, 242.57 by its rate of messages"),
        (OSU_RATE, "\n64 ", "\n128 ", "its sizes are 8 16 32 128; 8 16 32 64 are expected"),
        (PING_PONG, "36.77", "56.77", "56.77 Mbytes/sec, 38.55 by its time, 1.66 usec"),
        (PING_PONG, "entering MPI_Finalize", "", "cut short: '# All processes entering MPI_Finalize'"),
        (ALLREDUCE, "#processes = 4", "#processes = 2", "2 processes instead of 4"),
        (ALLREDUCE, "Benchmarking Allreduce", "Benchmarking Reduce", "test is Reduce instead of Allreduce"),
        (IO500, "0.148076", "0.158076", "bandwidth is 0.741339, by its phases 0.753"),
        (IO500, "[RESULT]                 find", "[      ]                 find", "without the phases"),
        (IO500, "TOTAL 5.537435", "TOTAL 6.537435", "score is 6.537435, by its phases 5.537"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(
    tmp_path: Path, recorded: Recorded, old: str, new: str, words: str
) -> None:
    assert old in recorded.text
    with pytest.raises((OutputError, FailedError)) as caught:
        recorded.parse(tmp_path, recorded.text.replace(old, new))
    assert words in str(caught.value)


def test_phases_that_were_not_run_are_refused(tmp_path: Path) -> None:
    """mdtest -C alone prints a rate of 0 for the others."""
    text = re.sub(r"(File stat +)\S+ +\S+ +\S+", r"\g<1>0.000 0.000 0.000", MDTEST_40.text)
    with pytest.raises(OutputError, match=r"File stat: 0 a second: expected are all phases"):
        MDTEST_40.parse(tmp_path, text)


# --- how they are started ---

MPIRUN = """#!/bin/bash
[[ $1 != --version ]] || { printf 'mpirun (Open MPI) 4.1.4\\n'; exit; }
while [[ $1 != */own ]]; do shift; done
exec "$@"
"""
# Prints how it was started, and does what is requested.
OWN = """#!/bin/bash
printf '%s\\n' "$*" >"$SY_ATTEMPT_DIR/words"
{act}
"""


def ran(study: Study, recorded: Recorded, act: str, **more: object) -> str:
    """The words that the program got, after a run that is read as the recorded output."""
    own, mpirun = (study.folder.parent / name for name in ("own", "mpirun"))  # a name of one line
    for path, text in ((own, OWN.format(act=act)), (mpirun, MPIRUN)):
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    given = {**recorded.given, "program": str(own), "mpirun": str(mpirun), **more}
    benchmark = registry.load(recorded.benchmark)
    study.write(benchmark, 1, **given)
    done = study.run()
    assert done.returncode == 0, done.stderr
    assert benchmark.parse(study.attempt(), 0, given)
    assert str(own) in (study.attempt() / "environment.0").read_text(encoding="utf-8")
    return (study.attempt() / "words").read_text(encoding="utf-8")


def printed(recorded: Recorded) -> str:
    return f"cat '{DATA / recorded.benchmark / recorded.file}'"


def test_hpcg_gets_its_file_and_its_document_is_read(study: Study) -> None:
    document = DATA / "hpcg" / HPCG.file
    act = f"cp hpcg.dat \"$SY_ATTEMPT_DIR/dat\"; cp '{document}' HPCG-Benchmark_3.1_2026-11-23.txt"
    ran(study, HPCG, act)
    dat = (study.attempt() / "dat").read_text(encoding="utf-8").splitlines()
    assert dat[2:] == ["16 24 32", "2"]


def test_the_document_of_intels_hpcg_is_found_by_its_own_name(study: Study) -> None:
    document = DATA / "hpcg" / INTEL_HPCG.file
    ran(study, INTEL_HPCG, f"cp '{document}' n16-2p-1t_V3.1_2026-11-27_10-00-00.txt")


def test_ior_gets_options_and_a_folder_of_the_run(study: Study) -> None:
    words = ran(study, IOR_40, printed(IOR_40), options="-w -r -e -C -F -t 64k -b 1m -s 2")
    assert words.startswith("-w -r -e -C -F -t 64k -b 1m -s 2 -i 3 -o ")
    assert str(study.scratch) in words


def test_mdtest_makes_one_iteration_and_tells_its_times(study: Study) -> None:
    words = ran(study, MDTEST_40, printed(MDTEST_40), options="-u -w 3901")
    assert words.startswith("-i 1 -P -n 200 -F -u -w 3901 -d ")


def test_iors_json_is_read_where_it_is_asked_for(study: Study) -> None:
    json = DATA / "ior" / IOR_JSON_40.file
    words = ran(study, IOR_JSON_40, f"last=${{*: -1}}; cp '{json}' \"${{last#*=}}\"; echo text")
    assert "-O summaryFormat=JSON -O summaryFile=" in words
    assert "text" in (study.attempt() / "err.0").read_text(encoding="utf-8")


def test_osus_programs_get_the_range_of_sizes(study: Study) -> None:
    assert ran(study, OSU_RATE, printed(OSU_RATE), options="-W 16") == "-m 8:64 -W 16\n"


def test_imb_gets_the_test_and_the_sizes_as_powers_of_two(study: Study) -> None:
    words = ran(study, ALLREDUCE, printed(ALLREDUCE), options="-iter 100")
    assert words == "-npmin 4 -msglog 3:6 -iter 100 Allreduce\n"


def test_sizes_that_are_no_powers_of_two_are_refused(study: Study) -> None:
    own = study.folder.parent / "own"
    own.write_text("#!/bin/bash\n", encoding="utf-8")
    own.chmod(0o755)
    study.write(registry.load("osu"), 1, program=str(own), smallest=8, largest=100)
    assert study.run().returncode != 0
    said = (study.attempt() / "err.0").read_text(encoding="utf-8")
    assert "smallest is 8 bytes and largest 100 bytes; give two powers of two" in said


def test_the_io500_gets_the_users_configuration_with_the_runs_folders(
    study: Study, tmp_path: Path
) -> None:
    config = tmp_path / "mine.ini"
    config.write_text("[global]\ndatadir = /nowhere\n[ior-easy]\nblockSize = 20m\n")
    act = printed(IO500) + '; d=$(sed -n "s/^resultdir = //p" "$1"); echo "[run]" >"$d/result.txt"'
    ran(study, IO500, act, config=str(config))
    given = (study.attempt() / "io500.0.ini").read_text(encoding="utf-8")
    assert given.startswith(config.read_text(encoding="utf-8"))
    last = [line for line in given.splitlines() if line.startswith("datadir")][-1]
    assert str(study.scratch) in last
    assert (study.attempt() / "io500.0.txt").read_text(encoding="utf-8") == "[run]\n"


@pytest.mark.parametrize("name", ["hpcg", "ior", "mdtest", "io500", "osu"])
def test_without_a_program_it_is_told_what_to_give(name: str) -> None:
    given: dict[str, object] = {"config": "/opt/a.ini"} if name == "io500" else {}
    with pytest.raises(registry.ParameterError, match=r"needs program: absolute path of your own"):
        registry.load(name).check_parameters(given)
