"""Programs and files of the user with our server, and background traffic."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.system.hep.conftest import Study
from tests.system.hep.test_client_groups import nodes  # noqa: F401 - a fixture

from steelyard.jobscripts.hep import background_traffic


def test_a_program_of_ones_own_beside_the_server_that_we_start(study: Study) -> None:
    """It copies what {url} names, quoted as one argument, once for each client."""
    line = (
        "xrdcp --silent {url} {output} && sha256sum <{output} && echo \"client '{client}'\" && pwd"
    )
    found = study.completed("xrootd", mode="command", command=line, clients=2)
    size = next((study.folder / "data").glob("*.root")).stat().st_size
    assert 2 * size < found["server_bytes"] < 2.2 * 2 * size
    assert 0 < found["first_end_s"] <= found["seconds"]
    assert "bytes_read" not in found and "summed_bytes_per_s" not in found
    said = [(study.attempt / f"command.{i}.out").read_text().splitlines() for i in (0, 1)]
    (expected,) = subprocess.run(
        ["sha256sum", *(study.folder / "data").glob("*.root")], capture_output=True, text=True,
        check=True,
    ).stdout.split()[:1]  # fmt: skip
    assert [lines[:2] for lines in said] == [[f"{expected}  -", f"client '{i}'"] for i in (0, 1)]
    assert said[0][2] != said[1][2], "a folder for each"


def test_a_program_that_fails_is_quoted(study: Study) -> None:
    found = study.run("xrootd", mode="command", command="echo so sorry >&2; exit 7")
    assert "client 0: the command ended with 7: so sorry" in found["reason"]
    found = study.run("xrootd", mode="command")
    assert 'expected command = "PROGRAM … {url}", found none' in found["reason"]


def test_a_file_of_ones_own(study: Study, base: Path) -> None:
    own = base / "my file.root"
    shutil.copy(next((study.folder / "data").glob("*.root")), own)
    found = study.run("xrootd", file=str(own))
    assert "expected verify = false, since nobody knows" in found["reason"]
    found = study.completed("xrootd", file=str(own), verify=False)
    assert found["vector_read_requests"] == 3
    gone = study.run("xrootd", file=str(base / "gone"), verify=False)
    assert "the server on" in gone["reason"] or "expected a file that can be read" in gone["reason"]


def test_others_fetch_beside_the_clients_on_all_nodes(nodes: Study) -> None:  # noqa: F811
    found = nodes.completed(
        "xrootd", mode="xrdcp", clients=2, background=3, background_size="64KiB", iterations=2
    )
    # Each had its first answer before the clients began.
    assert found["background_requests"] >= 3
    assert found["background_bytes_per_s"] > 0
    refused = nodes.run("xrootd", mode="local", background=1)
    assert "background: expected a server of the run's own" in refused["reason"]


def test_what_others_got_is_what_was_asked_for() -> None:
    """Whole answers: requests times their size, and at most one that was cut short."""
    with background_traffic.started(["serve", "5000000"]) as server:
        port = int(background_traffic.line_of(server))
        with background_traffic.others(2, f"http://127.0.0.1:{port}") as others:
            found = others.end()
    for one in found:
        assert one["requests"] >= 1
        assert 0 <= one["bytes"] - 5_000_000 * one["requests"] < 5_000_000
    gone = background_traffic.others(1, f"http://127.0.0.1:{port}")
    with pytest.raises(background_traffic.BackgroundError, match="got nothing from"):
        gone.__enter__()
