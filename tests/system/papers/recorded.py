"""The recorded output of `report --beside` for all four papers: tests/data/papers/reports.

The inputs are the databases of paper_studies.py and every example study of shipped.py. `python -m
tests.system.papers.recorded` writes the files: review what has changed in them.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from tests.unit.summary.study_maker import StudyMaker

from steelyard.analysis.papers.report import ComparisonReport
from steelyard.analysis.report import export

from . import paper_studies as made
from . import shipped

FOLDER = Path(__file__).parents[2] / "data/papers/reports"
WIDE = (0.5, 0.8, 1.0, 1.2, 1.5)  # no interval of these is narrow enough

MADE: Mapping[str, Sequence[Callable[[], Sequence[StudyMaker]]]] = {
    "bourilkov2012": [
        lambda: [made.bourilkov_xen()],
        lambda: [made.bourilkov_trees()],
    ],
    "jungels2012": [
        lambda: [made.jungels_hpc(), made.jungels_hpl()],
        lambda: [made.jungels_files("each")],
        lambda: [made.jungels_files("one")],
    ],
    "kommeri2016": [
        lambda: [made.kommeri_local()],
        lambda: [made.kommeri_cvmfs()],
        lambda: [made.kommeri_blades()],
    ],
    "ruiz2015": [
        lambda: [made.ruiz_q3()],
        lambda: [made.ruiz_q3(WIDE)],
        lambda: [made.ruiz_q3((0.99, 1.01))],
        lambda: [made.ruiz_q3(kernels=("ep", "is"))],
        lambda: [made.ruiz_lossy()],
        lambda: [made.ruiz_q2(), made.ruiz_multinode()],
        lambda: [made.ruiz_side_by_side()],
        lambda: [made.ruiz_kernels()],
    ],
}


def made_cases(paper: str, folder: Path) -> str:
    """Return the reports of paper_studies.py's databases, with every interval."""
    lines: list[str] = []
    for number, makers in enumerate(MADE[paper]):
        report = made.beside(makers(), paper, folder / str(number))
        names = " + ".join(one.data.meta.study for one in report.summaries)
        lines += [f"== {number}: {names}", *interval_lines(report), *digest_lines(report)]
    return "".join(f"{line}\n" for line in lines)


def example_studies(paper: str, folder: Path) -> str:
    """Return the reports of a paper's example studies: verdicts and digests.

    The files of shipped.py contain the conditions.
    """
    lines: list[str] = []
    for studies in shipped.groups(paper):
        report = shipped.beside(studies, folder / "+".join(studies))
        lines += [f"== {' + '.join(studies)}"]
        lines += [f"{one.outcome}: {one.claim.words}" for one in report.verdicts if one.evidence]
        lines += digest_lines(report)
    return "".join(f"{line}\n" for line in lines)


def interval_lines(report: ComparisonReport) -> Iterator[str]:
    """Yield verdicts with reasons and intervals, and printed numbers with the study's own."""
    document = beside_part(report)
    for claim in document["claims"]:
        yield f"{claim['verdict']}: {claim['words']}"
        yield f"  {claim['reason']} [{claim['size'] or 'no size'}]"
        for seen in claim["seen"]:
            yield f"  {seen['outcome']}: {interval(seen)}"
    for value in document["printed"]:
        if value["n"]:
            place = " · ".join((*value["place"], value["column"]))
            yield f"{place}: {value['printed']}, here {interval(value)}, n = {value['n']}"


def digest_lines(report: ComparisonReport) -> Iterator[str]:
    """Yield the paper's part of JSON, page and terminal, and each figure's text and numbers."""
    document = beside_part(report)
    for figure in document["figures"]:
        yield f"figure {figure['name']}: {len(figure['rows'])} rows, {digest(figure)}"
    sections = [
        [
            one.anchor,
            one.title,
            [*one.sentences],
            [[c, t.headings, [*t.rows]] for c, t in one.tables],
        ]
        for one in report.extra().sections
    ]
    yield f"JSON: {digest(document)}"
    yield f"page: {digest(sections)}"
    yield f"terminal: {digest(report.describe_claims())}"


def beside_part(report: ComparisonReport) -> dict[str, Any]:
    """Return the JSON without the figures of the study, which take longer than all the rest."""
    with mock.patch.object(export, "figure_jobs", return_value=[]):
        found: dict[str, Any] = report.document()["beside"]
    return found


def interval(found: Mapping[str, Any]) -> str:
    """Return `0.8 (0.78 … 0.82)`; the mean or the value."""
    value = found["value"] if "value" in found else found["mean"]
    return f"{value and f'{value:.9g}'} ({rounded(found['low'])} … {rounded(found['high'])})"


def digest(whole: object) -> str:
    """Return a digest of numbers with nine digits, since the last ones depend on the processor."""
    text = json.dumps(rounded(whole), ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def rounded(whole: Any) -> Any:
    """Return the document with all floats rounded to nine digits."""
    if isinstance(whole, float):
        return float(f"{whole:.9g}")
    if isinstance(whole, Mapping):
        return {name: rounded(one) for name, one in whole.items()}
    return [rounded(one) for one in whole] if isinstance(whole, list | tuple) else whole


PARTS = {"": made_cases, "-studies": example_studies}


def main() -> None:
    """Write all files."""
    FOLDER.mkdir(exist_ok=True)
    for paper in MADE:
        for part, cases in PARTS.items():
            with tempfile.TemporaryDirectory() as folder:
                words = cases(paper, Path(folder))
            (FOLDER / f"{paper}{part}.txt").write_text(words, encoding="utf-8")


if __name__ == "__main__":
    main()
