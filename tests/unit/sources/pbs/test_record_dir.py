"""Where records are, as the site has configured its Torque or OpenPBS."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steelyard.analysis.collect.record_import import find_default_record_dirs
from steelyard.analysis.sources.pbs import record_dir


@pytest.fixture
def etc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("STEELYARD_RECORD_DIR", raising=False)
    monkeypatch.setattr(record_dir, "NODE_FILE", str(tmp_path / "pbs.conf"))
    monkeypatch.setattr(record_dir, "HOOK_FILE", str(tmp_path / "openpbs.json"))
    return tmp_path


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("record_dir=/shared/rec\n", "/shared/rec"),
        (" record_dir =\t/shared/rec \r\nrate=1\n", "/shared/rec"),
        ("record_dir=/a\n#record_dir=/c\nrecord_dir=/shared/my records\n", "/shared/my records"),
        ("#record_dir=/c\nrun_dir=/run/x\n", "/var/lib/steelyard/records"),
        ("record_dir=relative\n", "/var/lib/steelyard/records"),
        ("record_dir\n", "/var/lib/steelyard/records"),
    ],
)
def test_the_nodes_file_names_the_folder(etc: Path, text: str, found: str) -> None:
    (etc / "pbs.conf").write_bytes(text.encode())
    assert find_default_record_dirs() == [Path(found)]


def test_the_hooks_configuration_wins_and_may_name_another_file(etc: Path) -> None:
    (etc / "pbs.conf").write_text("record_dir=/shared/torque\n")
    (etc / "openpbs.json").write_text(json.dumps({"record_dir": "/shared/hook"}))
    assert find_default_record_dirs() == [Path("/shared/hook")]
    (etc / "other.conf").write_text("record_dir=/shared/other\n")
    (etc / "openpbs.json").write_text(json.dumps({"config": str(etc / "other.conf")}))
    assert find_default_record_dirs() == [Path("/shared/other")]
    (etc / "openpbs.json").write_text("[1]")
    assert find_default_record_dirs() == [Path("/shared/torque")]


def test_the_environment_wins_and_no_setting_is_the_default(
    etc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_default_record_dirs() == [Path("/var/lib/steelyard/records")]
    (etc / "pbs.conf").write_text("record_dir=/shared/torque\n")
    monkeypatch.setenv("STEELYARD_RECORD_DIR", "/mine")
    assert find_default_record_dirs() == [Path("/mine")]
