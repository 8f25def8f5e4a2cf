"""Several studies of one paper: `report STUDY STUDY --beside PAPER`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.summary.study_maker import StudyMaker

from steelyard.analysis.papers.report import ComparisonReport
from steelyard.analysis.papers.verdicts import HOLDS, UNKNOWN, Verdict
from steelyard.analysis.report.figures import draw_figures
from steelyard.wrappers.commands.cli import main

from ..report.test_page import Checker
from . import paper_studies
from .paper_studies import beside

FAR = "Over several machines CG communicates longer than in containers of one"
MANY = [1 + 0.01 * number for number in range(-5, 6) if number]  # ten blocks


def judged(report: ComparisonReport, words: str) -> Verdict:
    (found,) = [one for one in report.verdicts if one.claim.words == words]
    return found


@pytest.fixture(scope="module")
def q2(tmp_path_factory: pytest.TempPathFactory) -> ComparisonReport:
    makers = [paper_studies.ruiz_q2(), paper_studies.ruiz_multinode()]
    return beside(makers, "ruiz2015", tmp_path_factory.mktemp("q2"))


@pytest.mark.parametrize(
    ("maker", "reason"),
    [
        (paper_studies.ruiz_q2, "no runs with nodes=more than 1"),
        (paper_studies.ruiz_multinode, "no runs with container=yes"),
    ],
)
def test_one_of_them_cannot_tell(maker: object, reason: str, tmp_path: Path) -> None:
    assert callable(maker)
    found = judged(beside(maker(), "ruiz2015", tmp_path), FAR)
    assert found.outcome == UNKNOWN and found.reason.startswith(reason)
    asked = "ruiz2015-q2.toml and ruiz2015-q2-multinode.toml together ask it"
    assert found.reason.endswith(asked)


def test_together_they_can(q2: ComparisonReport) -> None:
    """6 s of communication on eight machines, 3.3 s in eight containers of one."""
    found = judged(q2, FAR)
    assert found.outcome == HOLDS
    (seen,) = found.evidence
    assert seen.value == pytest.approx(6 / 3.3 - 1)
    assert seen.condition == "machines: launcher=bare, network=none"
    assert seen.against.startswith("q2: launcher=podman:") and "containers=8" in seen.against
    assert seen.remark == "class=S for B, of two studies, which did not take turns"


def test_table_1_has_all_three_configurations(q2: ComparisonReport) -> None:
    found = {one.value.place[0] for one in q2.values if one.row}
    assert found == {"multinode", "container", "sm"}
    (figure,) = [one for one in draw_figures(q2.draws) if one.name == "ruiz2015-table-1"]
    assert len(figure.rows) == 3 * 2 * 3  # configurations, programs, parts


def jungels(name: str, kernels: dict[str, float], types: list[str]) -> StudyMaker:
    """Ten blocks of each node type; virtual nodes have this share of the rate, run by run."""
    maker = StudyMaker(name, {"node_type": types}, {"node_type": types[0]})
    for kernel, share in kernels.items():
        for node_type in types:
            for block, spread in enumerate(MANY, start=1):
                run = maker.run(
                    "npb",
                    {"kernel": kernel, "class": "S", "ranks": 4},
                    {"node_type": node_type},
                    block,
                )
                rate = 100 * spread * (share if node_type == "virtual" else 1.0)
                maker.result(run, "mops", rate, "Mop/s", "higher")
                model = {"physical": "Xeon", "virtual": "Opteron"}[node_type]
                maker.record(run, "n1", 10.0, cpu_model=model)
    return maker


def test_runs_of_two_studies_are_paired_by_no_block(tmp_path: Path) -> None:
    """Each virtual run takes 0.7 of the physical one with its block's number.

    With pairs the report would state −30 % without any uncertainty.
    """
    makers = [jungels(one, {"cg": 0.7}, [one]) for one in ("physical", "virtual")]
    (seen,) = judged(
        beside(makers, "jungels2012", tmp_path), "CG is slower on virtual nodes"
    ).evidence
    assert seen.low is not None and seen.high is not None
    assert seen.value == pytest.approx(-0.3) and 0.02 < seen.high - seen.low < 0.06
    assert seen.remark.endswith("of two studies, which did not take turns, on Opteron against Xeon")


def test_a_study_with_both_sides_is_judged_by_its_own(tmp_path: Path) -> None:
    both = ["physical", "virtual"]
    makers = [jungels("a", {"cg": 0.7}, both), jungels("b", {"cg": 0.6}, both)]
    found = judged(beside(makers, "jungels2012", tmp_path), "CG is slower on virtual nodes")
    pairs = [(one.condition, one.against, pytest.approx(one.value)) for one in found.evidence]
    assert pairs == [
        ("a: node_type=virtual", "a: node_type=physical", -0.3),
        ("b: node_type=virtual", "b: node_type=physical", -0.4),
    ]
    assert all(one.low == pytest.approx(one.value) for one in found.evidence), "paired by block"
    assert {one.remark for one in found.evidence} == {"class=S for B"}


def test_json_names_the_studies(q2: ComparisonReport) -> None:
    document = q2.document()
    found = json.loads(json.dumps(document["beside"]))
    assert found["studies"] == ["q2", "machines"]
    one = next(claim for claim in found["claims"] if claim["words"] == FAR)
    assert one["study"] == "ruiz2015-q2, ruiz2015-q2-multinode"
    assert one["seen"][0]["condition"].startswith("machines: ")
    assert one["seen"][0]["against"].startswith("q2: ")


def test_the_page_is_the_first_studys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    makers = (paper_studies.ruiz_q2(), paper_studies.ruiz_multinode())
    folders = [str(maker.write(tmp_path)) for maker in makers]
    assert main(["report", *folders, "--beside", "ruiz2015"]) == 0
    words = capsys.readouterr().out
    assert "by 2 studies: holds: 1" in " ".join(words.split())
    page = (tmp_path / "q2.ruiz2015.html").read_text(encoding="utf-8")
    checker = Checker()
    checker.feed(page)
    assert checker.faults == checker.open == []
    assert "machines: launcher=bare" in page
    assert "steelyard report q2.toml machines.toml --beside ruiz2015" in page


def test_several_are_told_together_only_beside_a_paper(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(paper_studies.ruiz_q2().write(tmp_path))
    assert main(["report", folder, folder]) == 2
    assert "2 studies: a report is of one" in capsys.readouterr().err
    assert main(["report", folder, folder, "--beside", "ruiz2015"]) == 2
    assert "two studies are called q2" in capsys.readouterr().err
