"""run.sh of xrootd and roottree executed for real, read by their parsers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.processes import each_process
from tests.system.hep.conftest import RECIPE, RUN_ID, SMALL, Server, Study
from tests.waiting import wait_for

from steelyard.jobscripts import registry, runscript
from steelyard.jobscripts.hep import input_files
from steelyard.jobscripts.registry import FailedError, OutputError

NAME = input_files.file_name(RECIPE)


# --- xrootd ---


@pytest.mark.slow
def test_an_analysis_by_two_clients_over_a_server_of_the_runs_own(study: Study) -> None:
    found = study.completed("xrootd", clients=2, iterations=2)
    # 3 steps, 4 branches, 2 clients
    assert found["vector_read_requests"] == 6
    assert found["vector_read_segments"] == 24
    assert found["server_vector_read_requests"] == 2 * 6
    assert found["server_read_requests"] == 2 * found["read_requests"]
    assert found["server_bytes"] > 2 * found["bytes_read"] > 0
    assert 0 < found["wait_share"] < 1
    assert found["events_per_s"] == pytest.approx(6000 / found["seconds"])
    assert {r.iteration for r in study.results() if r.metric == "seconds"} == {1, 2}
    lines = (study.attempt / "spans.0").read_text().splitlines()
    spans = {(s["span"], s["iteration"]): s for s in map(json.loads, lines)}
    for span, metric in (("iteration", "seconds"), ("until_first", "first_end_s")):
        took_s = spans[span, 1]["end_unix_s"] - spans[span, 1]["begin_unix_s"]
        assert took_s == pytest.approx(found[metric], abs=1e-6)
    assert spans["until_first", 2]["begin_unix_s"] >= spans["iteration", 1]["end_unix_s"]
    tags = (study.attempt / "tags.0").read_text().splitlines()
    assert {line.partition("=")[0] for line in tags} == {
        *("server_node", "client_nodes", "uproot_version", "awkward_version", "numpy_version"),
        *("xrootd_version", "xrootd_server_version"),
    }


def test_single_requests_are_many_and_reading_ahead_is_possible(study: Study) -> None:
    found = study.completed("xrootd", requests="single", read_ahead=1, page_cache="cold")
    assert found["vector_read_requests"] == 0
    assert found["server_read_requests"] == found["read_requests"] >= 12


def test_a_plain_copy(study: Study) -> None:
    size = (study.folder / "data" / NAME).stat().st_size
    found = study.completed("xrootd", mode="xrdcp", clients=2, streams=2, chunk_size="64KiB")
    assert found["bytes_read"] == 2 * size
    assert found["server_bytes"] > 2 * size
    assert "wait_share" not in found


def test_the_same_analysis_without_a_server(study: Study) -> None:
    found = study.completed("xrootd", mode="local")
    assert "server_bytes" not in found
    assert found["bytes_read"] > 0


def test_a_given_server_and_its_note(study: Study, start: Callable[..., Server]) -> None:
    running = start()
    found = study.run("xrootd", url=running.url)
    assert found["state"] == "failed"
    assert "nothing to verify against" in found["reason"]
    assert "give verify = false" in found["reason"]
    shutil.copy(study.folder / "data" / f"{NAME}.json", Path(running.own) / "data")
    figures = study.completed("xrootd", url=running.url)
    assert "server_bytes" not in figures
    assert study.completed("xrootd", url=running.url, mode="xrdcp")
    other = study.completed("xrootd", url=running.url, verify=False, xrd="XRD_REQUESTTIMEOUT=30")
    assert other["bytes_read"] == figures["bytes_read"]


def test_a_server_that_is_not_there_is_a_failure_within_seconds(study: Study) -> None:
    url, quick = "root://127.0.0.1:9//x.root", "XRD_CONNECTIONWINDOW=1 XRD_CONNECTIONRETRY=1"
    found = study.run("xrootd", url=url, verify=False, xrd=quick)
    assert found["state"] == "failed"
    assert "127.0.0.1:9" in found["reason"]
    found = study.run("xrootd", url=url, xrd="REQUESTTIMEOUT=30")
    assert "settings such as XRD_REQUESTTIMEOUT=60" in found["reason"]


@pytest.mark.parametrize(
    ("key", "value"), [("selected", 1), ("mass_sum_gev", 41586.6), ("sha256", "0")]
)
def test_what_was_not_found_fails_the_run_and_the_parser(
    study: Study, key: str, value: object
) -> None:
    """The note is changed, so that it is the file that is another one."""
    note = input_files.note_of(study.folder / "data" / NAME)
    known = json.loads(note.read_text())
    known["pairs"][key] = value
    note.write_text(json.dumps(known))
    found = study.run("xrootd", mode="local")
    assert found["state"] == "failed"
    assert f"client 0 found {key} = " in found["reason"]
    with pytest.raises(FailedError, match=f"but the input was made with {value!r}"):
        study.results()


def test_a_run_that_is_stopped_leaves_no_server(study: Study) -> None:
    text = runscript.render(
        registry.load("xrootd"), {**SMALL, "iterations": 10**6}, study_dir=study.folder,
        run_id=RUN_ID, environment={"STEELYARD_PYTHON": sys.executable, "SY_TIME_OUT_S": "6"},
    )  # fmt: skip
    (study.run_folder / "run.sh").write_text(text, encoding="utf-8")
    subprocess.run(
        ["bash", str(study.run_folder / "run.sh")],
        env={**os.environ, "SY_SCRATCH_BASE": str(study.scratch)},
        capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    (path,) = study.run_folder.glob("local.1/result.json")
    assert json.loads(path.read_bytes())["state"] == "timeout"
    wait_for("nothing is in the scratch folder", lambda: not list(study.scratch.iterdir()))
    wait_for(
        "no process of the run lives",
        lambda: (
            not [
                pid for pid, words in each_process("cmdline") if str(study.folder).encode() in words
            ]
        ),
    )


# --- roottree ---


@pytest.mark.parametrize("access", ["file", "xrootd"])
def test_a_tree_is_read_from_a_folder_and_from_a_server(study: Study, access: str) -> None:
    found = study.completed("roottree", access=access, iterations=2)
    assert found["compression_ratio"] > 1.2
    assert found["raw_bytes_per_s"] > found["bytes_per_s"] > 0
    assert {r.iteration for r in study.results()} == {1, 2}


def test_a_tree_is_made_and_read_in_a_folder_that_is_given(study: Study, tmp_path: Path) -> None:
    folder = tmp_path / "mounted"
    found = study.completed("roottree", data=str(folder), structure="unsplit", compression="none")
    assert (folder / "unsplit-none-3000-1000-7.root").is_file()
    assert found["compression_ratio"] == pytest.approx(1, rel=0.1)


def test_values_that_are_not_those_written_fail_the_run(study: Study) -> None:
    note = input_files.note_of(study.folder / "data" / NAME)
    known = json.loads(note.read_text())
    note.write_text(json.dumps(known | {"content_sha256": "0"}))
    found = study.run("roottree")
    assert found["state"] == "failed"
    assert "the input was made with '0'" in found["reason"]
    with pytest.raises(FailedError):
        study.results()


def test_figures_of_other_parameters_are_refused(study: Study) -> None:
    study.completed("roottree", iterations=1)
    study.given["step"] = 999
    with pytest.raises(OutputError, match="step was 1000 instead of 999"):
        study.results()
