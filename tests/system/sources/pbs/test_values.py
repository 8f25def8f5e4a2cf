"""Values, qstat's answers and exit statuses as both servers wrote them (tests/data)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.analysis.sources.pbs import pbs_commands

DATA = Path(__file__).parents[3] / "data"


@pytest.mark.parametrize(
    ("says", "found"),
    [
        ("Version: 6.1.3\\nCommit: ccdab3b4", ("torque", "6.1.3")),
        ("pbs_version = 23.06.06", ("openpbs", "23.06.06")),
        ("SGE 8.1.9", (None, None)),
    ],
)
def test_dialects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, found: tuple[str | None, str | None]
) -> None:
    for name in ("qstat", "pbsnodes"):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\nprintf '{says}\\n' >&2\n", encoding="utf-8")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert (pbs_commands.detect_dialect(), pbs_commands.read_version()) == found


def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, says: str) -> Path:
    """A qstat that writes down what it is asked, and answers this."""
    (tmp_path / "says").write_text(says, encoding="utf-8")
    version = "Version: 6.1.3" if kind == "torque" else "pbs_version = 23.06.06"
    for name in ("qstat", "pbsnodes"):
        path = tmp_path / name
        path.write_text(
            f'#!/bin/sh\n[ "$1" = --version ] && echo "{version}" && exit\n'
            f'echo "$@" >>{tmp_path}/asked\ncat {tmp_path}/says\n',
            encoding="utf-8",
        )
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path / "asked"


def test_many_ids_are_one_question_to_torque(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Torque 6.1.3's qstat runs out of connections at some 20 ids that it does not know."""
    says = (DATA / "torque" / "qstat-x-live.xml").read_text(encoding="utf-8")
    log = asked(tmp_path, monkeypatch, "torque", says)
    found = pbs_commands.query_jobs(["204.vm", "205", "207[1].vm", *(f"{n}.vm" for n in range(20))])
    assert log.read_text(encoding="utf-8") == "-x -t\n"
    assert list(found) == ["204.vm", "205.vm", "207[].vm"]


def test_tasks_are_asked_for_by_their_array(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says = (DATA / "openpbs" / "qstat-f-live.txt").read_text(encoding="utf-8")
    log = asked(tmp_path, monkeypatch, "openpbs", says)
    found = pbs_commands.query_jobs([f"270[{n}].vm" for n in range(20)] + ["268.vm"])
    assert log.read_text(encoding="utf-8") == "-x -f -t 270[].vm 268.vm\n"
    assert "268.vm" in found
