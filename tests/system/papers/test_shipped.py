"""Each shipped study with its paper: the conditions that every claim and printed number uses.

The studies have the conditions of their own plans. So a claim without a study, and one with
conditions that the paper did not have, fail. tests/data/papers has the text, reviewed by hand.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.analysis.papers.report import PAPERS
from steelyard.analysis.papers.verdicts import WORDS

from . import shipped

pytestmark = pytest.mark.slow

GROUPS = [group for paper in PAPERS for group in shipped.groups(paper)]
# What no shipped study can be judged by, and why.
UNASKED = {
    "From kernel 3.2 to 3.16 programs in containers become faster": "nobody has these kernels",
    "From kernel 3.16 to 4.0 programs in containers become faster again, at most by 22 %": "the same",
    "Xen has the best rates of all virtual nodes": "virtualizations are levels that a site adds",
    "Virtual nodes read more slowly than physical ones": "the same",
}


@pytest.mark.parametrize("group", GROUPS, ids="+".join)
def test_what_stands_beside_what(group: tuple[str, ...], tmp_path: Path) -> None:
    found = shipped.sides(shipped.beside(group, tmp_path))
    assert found == shipped.kept(group).read_text(encoding="utf-8")


def test_nothing_else_is_kept() -> None:
    assert sorted(shipped.KEPT.glob("*.txt")) == sorted(map(shipped.kept, GROUPS))


@pytest.mark.parametrize("paper", PAPERS)
def test_every_claim_finds_its_sides_in_the_studies_that_it_names(paper: str) -> None:
    claims = [one for one in PAPERS[paper].claims if one.kind != WORDS]
    lacking = set()
    for claim in claims:
        lines = shipped.kept(claim.studies).read_text(encoding="utf-8").splitlines()
        if claim.words not in lines:
            lacking.add(claim.words)
    assert lacking == {claim.words for claim in claims} & UNASKED.keys()


@pytest.mark.parametrize("paper", PAPERS)
def test_every_printed_number_has_ours_beside_it_in_some_study(paper: str) -> None:
    kept = "".join(shipped.kept(one).read_text(encoding="utf-8") for one in shipped.groups(paper))
    for title in {value.table for value in PAPERS[paper].values}:
        assert f"printed: {title}\n" in kept
