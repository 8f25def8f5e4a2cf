"""The page as Chromium prints and shows it: its length on paper, its width on a telephone."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from steelyard.analysis.report.page import write_report
from steelyard.analysis.summary.summary import summarize

pytestmark = [
    pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed"),
]
PAGES = 4  # of a study with 40 runs
TELEPHONE = 420
# Of itself, and of what is wider than its box without a way to scroll.
PROBE = """<iframe id=f width=%d height=900 src="report.html"></iframe><pre id=out></pre><script>
f.onload = () => { const d = f.contentDocument; for (const x of d.querySelectorAll('details')) x.open = true;
  const out = [...d.body.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > %d
    && !e.closest('.scroll, pre, svg, .skip, thead')).map(e => e.tagName + '.' + e.className);
  document.getElementById('out').textContent = 'WIDTH ' + d.documentElement.scrollWidth + ' OVER ' + out.join(' ') + ' END';
}</script>"""


def chromium(tmp_path: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile",
         "--allow-file-access-from-files", *arguments],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return done.stdout


@pytest.mark.parametrize("fixture", ["demo_folder", "energy_folder"])
def test_forty_runs_are_four_printed_pages(
    fixture: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    summary = summarize(request.getfixturevalue(fixture), equivalent=0.02)
    assert len(summary.data.runs) == 40
    page, paper = tmp_path / "report.html", tmp_path / "report.pdf"
    write_report(summary, page)
    chromium(tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={paper}", page.as_uri())
    pages = len(re.findall(rb"/Type\s*/Page\b", paper.read_bytes()))
    assert 1 <= pages <= PAGES


def printed(tmp_path: Path, page: str) -> str:
    """Return the text on the paper."""
    source, paper = tmp_path / "printed.html", tmp_path / "printed.pdf"
    source.write_text(page, encoding="utf-8")
    chromium(tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={paper}", source.as_uri())
    done = subprocess.run(
        ["pdftotext", "-layout", str(paper), "-"], capture_output=True, text=True, check=True
    )
    return " ".join(done.stdout.split())


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="poppler-utils is not installed")
def test_a_fold_that_is_opened_is_printed_and_a_closed_one_is_told(
    demo_folder: Path, tmp_path: Path
) -> None:
    summary = summarize(demo_folder)
    write_report(summary, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    closed = printed(tmp_path, page)
    told = "Parts below that say “folded”"
    assert told in closed
    for title in ("Overheads", "Nodes", "Every run"):
        assert f"{title} (folded, not printed)" in closed
    inside = [
        "Main figures against their baseline", "What the nodes were when the jobs started",
        "The checksum of the measurements", "How to read this", "Where (",
    ]  # fmt: skip
    assert [words for words in inside if words in closed] == []
    opened = printed(tmp_path, page.replace("<details", "<details open"))
    assert [words for words in inside if words not in opened] == []
    assert all(run.run_id in opened for run in summary.data.runs)
    assert "folded" not in opened
    nodes = '<details%s>\n<summary><h2 id="nodes-title'
    one = printed(tmp_path, page.replace(nodes % "", nodes % " open"))
    assert inside[1] in one and inside[0] not in one and "Nodes (folded" not in one


def test_a_telephone_shows_it_whole(energy_folder: Path, tmp_path: Path) -> None:
    """Nothing is wider than the page, all folds open, but what scrolls in its own box."""
    write_report(summarize(energy_folder), tmp_path / "report.html")
    probe = tmp_path / "probe.html"
    probe.write_text(PROBE % (TELEPHONE, TELEPHONE), encoding="utf-8")
    shown = chromium(tmp_path, "--dump-dom", "--virtual-time-budget=8000", probe.as_uri())
    found = re.search(r"WIDTH (\d+) OVER (.*?) END", shown)
    assert found is not None
    assert TELEPHONE - 30 < int(found[1]) <= TELEPHONE and found[2] == ""  # less a scroll bar
