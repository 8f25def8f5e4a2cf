"""The factor kernel_release before anything is submitted: which nodes run which kernel."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.wrappers.commands import cli
from steelyard.wrappers.schedulers.slurm import partitions

Write = Callable[..., Path]
Capture = pytest.CaptureFixture[str]

STUDY = """
[factors]
kernel_release = ["6.1", "6.18"]
[place."6.1"]
slurm = "--constraint=old"
[place."6.18"]
slurm = "--constraint=new"
[[benchmark]]
use = "filesystem"
"""
# As scontrol of 22.05 shows it, shortened.
NODE = (
    "NodeName={} Arch=x86_64 CoresPerSocket=1  CPUAlloc=0 CPUTot=2 AvailableFeatures={} "
    "OS=Linux {} #1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1 (2024-02-01)  RealMemory=1 State=IDLE "
    "Partitions=main "
)
PARTITION = "PartitionName=main Default=YES MaxNodes=UNLIMITED MaxTime=UNLIMITED State=UP"


def cluster(slurm: Any, *nodes: tuple[str, str, str]) -> None:
    slurm.change(node=[NODE.format(*one) for one in nodes], partition=[PARTITION])


def told(path: Path, capsys: Capture, code: int = 0) -> dict[str, Any]:
    assert cli.main(["check", str(path), "--json"]) == code
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_check_says_which_nodes_run_which_kernel(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    cluster(slurm, ("n1", "old", "6.1.0-18-amd64"), ("n2", "new", "6.18.5"))
    path = write_study(text=STUDY)
    found = told(path, capsys)
    assert found["kernels"] == {"6.1.0-18-amd64": ["n1"], "6.18.5": ["n2"]}
    assert found["problems"] == []
    cli.main(["check", str(path)])
    assert "kernels     6.1.0-18-amd64: n1; 6.18.5: n2\n" in capsys.readouterr().out


def test_nodes_that_run_another_kernel_are_missing_the_level(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    cluster(slurm, ("n1", "old", "6.18.5"), ("n2", "new", "6.18.5"))
    path = write_study(text=STUDY)
    words = (
        f'{path}: factors.kernel_release: "6.1": no node that its runs may have runs it (n1 '
        '6.18.5): [place."6.1"] says where such nodes are'
    )
    assert told(path, capsys, code=3)["problems"] == [{"text": words, "sure": True}]
    assert cli.main(["submit", str(path)]) == 3
    assert capsys.readouterr().err.endswith(f"steelyard submit: {words}\n")
    assert not slurm.jobs


def test_a_feature_of_unlike_nodes_is_a_warning(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    cluster(slurm, ("n1", "old", "6.1.0"), ("n2", "old,new", "6.18.5"))
    path = write_study(text=STUDY)
    (problem,) = told(path, capsys)["problems"]
    assert problem == {
        "text": f'{path}: factors.kernel_release: "6.1": its runs may come to nodes with another '
        "kernel (n2 6.18.5), and would be invalid: name a feature that these nodes do not have in "
        '[place."6.1"]',
        "sure": False,
    }


def test_two_factors_of_place_ask_for_both(slurm: Any, write_study: Write) -> None:
    cluster(slurm, ("n1", "old,vm", "6.1.0"), ("n2", "new,vm", "6.18.5"))
    path = write_study(text=STUDY.replace("[factors]", '[factors]\nnode_type = ["vm"]'))
    assert cli.main(["submit", str(path)]) == 0
    asked = re.findall(r"--constraint=\S+", "\n".join(job["script"] for job in slurm.jobs.values()))
    assert sorted(set(asked)) == ["--constraint='vm&new'", "--constraint='vm&old'"]


def test_on_this_machine_there_is_one_kernel(write_study: Write, capsys: Capture) -> None:
    path = write_study(text=STUDY.replace('"6.18"', '"2.6"'))
    cli.main(["check", str(path), "--scheduler", "local", "--json"])
    problems = [one["text"] for one in json.loads(capsys.readouterr().out)["problems"]]
    release = os.uname().release
    wrong = [level for level in ("6.1", "2.6") if not release.startswith(f"{level}.")]
    found = [text for text in problems if "factors.kernel_release" in text]
    assert len(found) == len(wrong)
    for level, text in zip(wrong, found, strict=True):
        assert f'"{level}"' in text and release in text


@pytest.mark.parametrize("level", ['"old"', "6.1", '"6"'])
def test_a_level_is_a_release(write_study: Write, capsys: Capture, level: str) -> None:
    path = write_study(text=f'[factors]\nkernel_release = [{level}]\n[[benchmark]]\nuse = "hpl"\n')
    assert cli.main(["check", str(path)]) == 2
    assert 'the beginning of what uname -r says, such as "6.1"' in capsys.readouterr().err


def test_words_of_scontrol_are_those_of_a_node_that_tells_no_kernel() -> None:
    row = dict(partitions.WORD.findall("NodeName=n1 CPUTot=2 OS= State=DOWN"))
    (node,) = partitions.parse_nodes([row])
    assert (node.kernel, node.up) == (None, False)
