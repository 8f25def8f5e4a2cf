"""The factors network and cache: checked by steelyard-node, requested of Slurm, in force here."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.commands import cli
from steelyard.wrappers.netem import kernel_support
from steelyard.wrappers.netem.kernel_support import Support
from steelyard.wrappers.study import folder as studydir
from steelyard.wrappers.study import study
from steelyard.wrappers.study.folder import StudyDir

Write = Callable[..., Path]
Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch

TEXT = """\
[study]
name = "wan"
repeat = 2
blocks = 2
[factors]
network = ["delay=0ms", "delay=50ms,loss=1%"]
cache = ["warm", "cold"]
[[benchmark]]
use = "filesystem"
test = "small_file_write"
write_files = 4
iterations = 1
"""
PLUGIN_HELP = """\
Usage: sbatch [OPTIONS(0)...] executable [args(0)...]
      --tag=KEY=VALUE         [steelyard] a tag
      --netem=SPEC            [steelyard] network conditions
                              of the job
      --cache=cold|warm       [steelyard] caches
"""
MODEST_HELP = "  -t, --time=minutes\n      --tag=KEY=VALUE   [steelyard] a tag, not --netem\n"


def folder_of(path: Path) -> StudyDir:
    return StudyDir(studydir.derive_folder(path).absolute())


def factors(line: str) -> bytes:
    return f'[factors]\n{line}\n[[benchmark]]\nuse = "filesystem"\n'.encode()


@pytest.mark.parametrize(
    ("line", "begin", "part"),
    [
        ('network = ["none", "delay=-5ms"]', 'factors.network: "delay=-5ms": ', "delay"),
        ('network = ["delay=1ms; reboot"]', 'factors.network: "delay=1ms; reboot": ', "delay"),
        ('network = ["dealy=1ms"]', 'factors.network: "dealy=1ms": ', "dealy"),
        ('network = ["a\\u0000b"]', 'factors.network: "a?b": ', ""),
        ('network = ["--help"]', 'factors.network: "--help": ', ""),
        ("network = [50]", "factors.network = 50: allowed is a specification such as", "none"),
        (
            'network = ["delay=50ms", "delay=0.05s"]',
            'factors.network: "delay=0.05s" asks for the same as "delay=50ms": ',
            "a level is named once",
        ),
        (
            'network = ["delay=1ms", "delay=1ms,direction=egress"]',
            'factors.network: "delay=1ms,direction=egress" asks for the same as "delay=1ms": ',
            "a level is named once",
        ),
        ('cache = ["direct"]', 'factors.cache: "direct": going around the cache', "direct = true"),
        (
            'cache = ["hot"]',
            'factors.cache = "hot": allowed is "cold", "warm", or "cold:cvmfs=300"',
            "",
        ),
        ("cache = [1]", 'factors.cache = 1: allowed is "cold", "warm", or "cold:cvmfs=300"', ""),
    ],
)
def test_a_level_that_cannot_be_is_one_line_that_names_it(line: str, begin: str, part: str) -> None:
    with pytest.raises(UsageError) as caught:
        study.parse_study(factors(line), Path("s.toml"))
    text = str(caught.value)
    assert text.startswith(f"s.toml: {begin}")
    assert part in text
    assert "\n" not in text


def test_levels_stay_as_they_were_written() -> None:
    levels = 'network = ["none", "loss=1%,delay=50.0ms", "trace=wan:repeat,to=10.1.0.0/16"]'
    found = study.parse_study(factors(levels), Path("s.toml"))
    assert found.factors["network"] == (
        "none", "loss=1%,delay=50.0ms", "trace=wan:repeat,to=10.1.0.0/16",
    )  # fmt: skip
    assert found.baseline == {"network": "none"}


def test_a_study_without_network_conditions_needs_no_program(monkeypatch: Patch) -> None:
    monkeypatch.setenv("STEELYARD_NODE", "/nowhere/steelyard-node")
    text = factors('network = ["none"]\ncache = ["warm", "cold"]')
    assert study.parse_study(text, Path("s.toml")).factors["cache"] == ("warm", "cold")


def test_none_is_no_option(slurm: Any, write_study: Write) -> None:
    path = write_study(('["delay=0ms", "delay=50ms,loss=1%"]', '["none"]'), text=TEXT)
    (slurm.folder / "sbatch.help").write_text(PLUGIN_HELP)
    assert cli.main(["submit", str(path)]) == 0
    assert not any("--netem" in job["script"] for job in slurm.jobs.values())


def test_a_cluster_whose_plugin_cannot_is_told_before_anything_is_submitted(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    path = write_study(text=TEXT)
    (slurm.folder / "sbatch.help").write_text(MODEST_HELP)
    assert cli.main(["submit", str(path)]) == 4
    assert "sbatch of this cluster has no option --netem of ours" in capsys.readouterr().err
    assert slurm.jobs == {}
    assert not folder_of(path).plan.exists()


def test_warm_caches_need_no_plugin(slurm: Any, write_study: Write) -> None:
    path = write_study(
        ('network = ["delay=0ms", "delay=50ms,loss=1%"]\n', ""), ('"warm", "cold"', '"warm"'),
        text=TEXT,
    )  # fmt: skip
    assert cli.main(["submit", str(path)]) == 0
    assert not any("--cache" in job["script"] for job in slurm.jobs.values())


def test_here_an_ordinary_user_is_refused_before_any_run(
    write_study: Write, capsys: Capture, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    path = write_study(text=TEXT)
    assert cli.main(["submit", str(path), "--scheduler", "local"]) == 4
    err = capsys.readouterr().err
    assert re.search(r"--netem=delay=\S+ --cache=cold: needs root on this machine", err)
    assert "sbatch --netem=" in err
    assert not folder_of(path).plan.exists()


def test_here_a_kernel_that_cannot_is_told_before_any_run(
    write_study: Write, capsys: Capture, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(kernel_support, "try_module", lambda module: Support(False, f"no {module}"))
    path = write_study(text=TEXT)
    assert cli.main(["submit", str(path), "--scheduler", "local"]) == 4
    assert re.search(r"--netem=delay=\S+: no sch_netem\n", capsys.readouterr().err)
    assert not folder_of(path).plan.exists()
