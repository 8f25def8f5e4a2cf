"""HPCG, IOR, mdtest and the IO500 by path: what their real outputs say, what is refused, and how they
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
HPCG_YAML = Recorded("hpcg", "HPCG-Benchmark-3.0.yaml", GRID)
IOR_33 = Recorded("ior_own", "easy.3.3.0.out", {"ranks": 2, "repetitions": 3})
IOR_40 = Recorded("ior_own", "easy.4.0.0.out", {"ranks": 2, "repetitions": 3})
JSON: dict[str, object] = {"ranks": 2, "repetitions": 2, "summary": "json"}
IOR_JSON_33 = Recorded("ior_own", "hard.3.3.0.json", JSON)
IOR_JSON_40 = Recorded("ior_own", "hard.4.0.0.json", JSON)
MDTEST = Recorded("mdtest", "both.3.3.0.out", {"ranks": 2, "files": 200, "kind": "both"})
MDTEST_40 = Recorded("mdtest", "files.4.0.0.out", {"ranks": 2, "files": 200})
IO500 = Recorded("io500", "invalid.out", {"ranks": 2, "config": "/opt/a.ini", "invalid": True})


# --- what they say ---


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
    """3.3 tells of one iteration the ranks' own: 400 files in the longest time, 0.570 s."""
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
    """mdtest -C alone tells of the others a rate of 0."""
    text = re.sub(r"(File stat +)\S+ +\S+ +\S+", r"\g<1>0.000 0.000 0.000", MDTEST_40.text)
    with pytest.raises(OutputError, match=r"File stat: 0 a second: expected are all phases"):
        MDTEST_40.parse(tmp_path, text)


# --- how they are started ---

MPIRUN = """#!/bin/bash
[[ $1 != --version ]] || { printf 'mpirun (Open MPI) 4.1.4\\n'; exit; }
while [[ $1 != */own ]]; do shift; done
exec "$@"
"""
# Says how it was started, and does what it is told to.
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


def test_ior_gets_options_and_a_folder_of_the_run(study: Study) -> None:
    words = ran(study, IOR_40, printed(IOR_40), options="-w -r -e -C -F -t 64k -b 1m -s 2")
    assert words.startswith("-w -r -e -C -F -t 64k -b 1m -s 2 -i 3 -o ")
    assert str(study.scratch) in words


def test_mdtest_makes_one_iteration_and_tells_its_times(study: Study) -> None:
    words = ran(study, MDTEST_40, printed(MDTEST_40), options="-u -w 3901")
    assert words.startswith("-i 1 -P -n 200 -F -u -w 3901 -d ")


def test_iors_json_is_read_where_it_is_asked_for(study: Study) -> None:
    json = DATA / "ior_own" / IOR_JSON_40.file
    words = ran(study, IOR_JSON_40, f"last=${{*: -1}}; cp '{json}' \"${{last#*=}}\"; echo text")
    assert "-O summaryFormat=JSON -O summaryFile=" in words
    assert "text" in (study.attempt() / "err.0").read_text(encoding="utf-8")


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


@pytest.mark.parametrize("name", ["hpcg", "ior_own", "mdtest", "io500"])
def test_without_a_program_it_is_told_what_to_give(name: str) -> None:
    given: dict[str, object] = {"config": "/opt/a.ini"} if name == "io500" else {}
    with pytest.raises(registry.ParameterError, match=r"needs program: absolute path of your own"):
        registry.load(name).check_parameters(given)
