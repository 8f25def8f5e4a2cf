"""The report as a page: whole, closed in itself, with the numbers that the database holds."""

from __future__ import annotations

import html
import importlib.resources
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.findings.registry import find_all
from steelyard.analysis.report.answer import describe_answer
from steelyard.analysis.report.export import document
from steelyard.analysis.report.links import link_places
from steelyard.analysis.report.page import write_report
from steelyard.analysis.report.tables import build_request_table
from steelyard.analysis.report.terminal_text import format_summary
from steelyard.analysis.summary.summary import Summary, summarize

VOID = {"meta", "br", "link", "img", "hr", "input", "col"}


class Checker(HTMLParser):
    """Tags must nest, ids be unique, links within the page lead somewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.faults: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        if found.get("id"):
            self.ids.append(str(found["id"]))
        self.links += [str(v) for k, v in attrs if k in ("href", "src", "xlink:href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> at {self.getpos()}")


@pytest.fixture(scope="module")
def page(demo_summary: Summary, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "report.html"
    assert write_report(demo_summary, path) == ([path], find_all(demo_summary))
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def checked(page: str) -> Checker:
    checker = Checker()
    checker.feed(page)
    checker.close()
    return checker


def visible(page: str) -> str:
    words = re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(words))


def test_the_page_is_well_formed(checked: Checker) -> None:
    assert checked.faults == []
    assert checked.open == []
    assert len(checked.ids) == len(set(checked.ids))


def test_a_fault_is_seen_by_the_checker() -> None:
    checker = Checker()
    checker.feed("<p><b>x</p></b>")
    assert checker.faults


def test_nothing_is_loaded_from_anywhere(page: str, checked: Checker) -> None:
    outside = [link for link in checked.links if not link.startswith(("#", "data:image/png;"))]
    assert outside == []
    assert not re.search(r"url\((?!#)|@import|https?:|<script|javascript:", page)
    assert {link[1:] for link in checked.links if link.startswith("#")} <= set(checked.ids)


def test_headings_go_down_by_one_level(checked: Checker) -> None:
    levels = [int(tag[1]) for tag, _ in checked.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_tables_have_headings_with_a_scope_and_scroll_in_their_own_box(
    checked: Checker,
) -> None:
    scopes = {attrs.get("scope") for tag, attrs in checked.tags if tag == "th"}
    assert scopes == {"col", "row", "rowgroup"}
    boxes = [attrs for _, attrs in checked.tags if attrs.get("class") == "scroll"]
    assert all(box.get("tabindex") == "0" and box.get("aria-label") for box in boxes)
    assert len(boxes) >= sum(tag == "table" for tag, _ in checked.tags)


def test_every_figure_has_a_caption_and_words_for_those_who_do_not_see(
    checked: Checker,
) -> None:
    figures = sum(tag == "figure" for tag, _ in checked.tags)
    labels = [a["aria-label"] for _, a in checked.tags if a.get("role") == "img"]
    assert figures == len(labels) == sum(tag == "figcaption" for tag, _ in checked.tags) == 14
    assert all(label and len(label) > 40 for label in labels)


def test_the_answer_comes_first_and_in_words(page: str) -> None:
    words = visible(page)
    sentence = (
        "With 2 clients instead of 1, filesystem test=large_file_copy takes 37 % longer (32 to 43 %). "
        "filesystem test=small_file_copy and hpl N=4000 differ little: at most 2.6 % worse or 1.3 % "
        "better. filesystem test=small_file_write varies too much to tell: it takes 31 % less to 27 % "
        "more time."
    )
    assert sentence in words
    assert "1 worse and 3 not shown to differ. 39 of 40 runs gave a result." in words
    assert "No energy can be compared: no RAPL: /sys/class/powercap is absent." in words
    places = [
        words.index(text)
        for text in (
            sentence,
            "How to read this",
            "Findings error SY01",
            "What was asked Variants",
            "Overheads Main figures against",
            "Figures and tables Long names",
        )
    ]
    assert places == sorted(places)
    assert "the same." not in words


def test_a_study_that_stopped_early_says_so(demo_summary: Summary) -> None:
    assert ("Repeats", "5") in build_request_table(demo_summary).rows
    meta = replace(demo_summary.data.meta, toml='[study]\nstop = { half_width = "1%" }\n')
    stopped = replace(demo_summary, data=replace(demo_summary.data, meta=meta))
    (words,) = (row[1] for row in build_request_table(stopped).rows if row[0] == "Repeats")
    assert words.startswith("5, until intervals were narrow enough") and "96 %" in words


def test_means_intervals_units_and_n_stand_in_the_tables(page: str) -> None:
    words = visible(page)
    assert "filesystem test=large_file_copy: seconds (s)" in words
    assert (
        "clients=1 (baseline) 5 0.800 0.768 … 0.833 < 45 % 0.806 0.026 0.022 0.768 0.835 0" in words
    )
    assert "hpl N=4000: gflops (Gflop/s)" in words


def test_what_was_not_measured_is_named(page: str) -> None:
    words = visible(page)
    assert "Without a single value: energy_j." in words
    assert "SY07 no energy was measured." in words
    assert words.count("No figure over time: fewer than 5 samples on a node are at hand") == 2


def test_every_run_can_be_traced(page: str, demo_summary: Summary) -> None:
    for run in demo_summary.data.runs:
        assert f'<th scope="row">{run.run_id}</th><td>{run.job_id}</td>' in page
    words = visible(page)
    assert "failed: output of client 1: line 3 is cut short" in words
    assert re.search(r"filesystem-d00f3584-004 \d+ 2026-\S+ \S+ 2 1\d\d[.\d]* n\d outlier", words)


def test_what_is_found_leads_to_the_runs_it_was_found_in(page: str, demo_summary: Summary) -> None:
    group = next(g for g in demo_summary.groups if g.counts.failed)
    place = f"{group.variant} · {group.label}"
    anchor = re.search(rf'<li><a href="#([^"]+)">{place}</a>: 1 of 5</li>', page)
    assert anchor
    listed = page.split(f'<tbody id="{anchor[1]}">')[1].split("</tbody>")[0]
    assert re.findall(r'<th scope="row">(.*?)</th>', listed) == [run.run_id for run in group.runs]


def test_the_longest_name_that_is_known_leads_on() -> None:
    heads = {"a": "runs-of-1", "a · x=1": "runs-1", "a · x=1: 2": "runs-2", "a-001": "runs-1"}
    texts = (
        "a · x=1: 2: 3 of 5",
        "a · x=1 · s: n = 4",
        "a · s: none",
        "a-001: lost",
        "a b",
        "b: 1",
    )
    found = [(one.anchor, one.head) for one in link_places(texts, heads)]
    known = [
        ("runs-2", "a · x=1: 2"),
        ("runs-1", "a · x=1"),
        ("runs-of-1", "a"),
        ("runs-1", "a-001"),
    ]
    assert found == [*known, ("", ""), ("", "")]
    assert [one.head + one.rest for one in link_places(texts, heads)] == list(texts)


def test_findings_have_code_advice_and_places(page: str, demo_summary: Summary) -> None:
    words = visible(page.replace("</a>", ""))
    for finding in find_all(demo_summary):
        assert f"{finding.kind.severity.value} {finding.kind.code}" in words
        assert finding.kind.title in words
        for place in finding.places[:30]:
            assert place in words
    assert "<code>steelyard submit --retry-failed</code> repeats them" in page


def test_nodes_gaps_and_how_to_redo_it(page: str, demo_summary: Summary) -> None:
    words = visible(page)
    assert "n1, n2 physical none none 6.1.0-18-amd64" in words
    assert "8 GB" in words
    assert "1 × output" in words
    meta = demo_summary.data.meta
    assert meta.toml is not None
    assert meta.toml in html.unescape(page)
    assert str(meta.toml_sha256) in page
    assert "Seed of the order of runs 1" in words


def test_the_same_database_gives_the_same_page(
    page: str, demo_folder: Path, tmp_path: Path
) -> None:
    write_report(summarize(demo_folder), tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == page


def test_names_from_a_study_are_text_and_never_markup(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    evil = "<script>alert(1)</script>$x_1$"
    maker = synthetic.StudyMaker("evil", {"f": [evil, "b"]}, {"f": evil})
    for level in (evil, "b"):
        run = maker.run("x", {"p": evil}, {"f": level}, 1)
        maker.result(run, "seconds", 1.0, "s")
        maker.record(run, evil, 1.0, kernel=evil)
    write_report(summarize(maker.write(tmp_path)), tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;$x_1$" in text


def test_an_empty_study_has_a_report(synthetic: ModuleType, tmp_path: Path) -> None:
    maker = synthetic.StudyMaker("waiting", {"clients": [1, 2]}, {"clients": 1})
    maker.run("x", {}, {"clients": 1}, 1, state="planned")
    summary = summarize(maker.write(tmp_path))
    write_report(summary, tmp_path / "r.html")
    words = visible((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "No run has given a result that counts" in words
    assert "SY02 runs have not finished." in words
    assert "No records: what the nodes were is not known." in words


def test_a_report_that_cannot_be_written_says_where(demo_summary: Summary, tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="cannot be written"):
        write_report(demo_summary, tmp_path / "absent" / "r.html")
    assert list(tmp_path.iterdir()) == []


def test_ten_thousand_runs_stay_below_3_mb(synthetic: ModuleType, tmp_path: Path) -> None:
    write_report(summarize(synthetic.large().write(tmp_path)), tmp_path / "r.html")
    assert (tmp_path / "r.html").stat().st_size < 3_000_000


def test_the_terminal_fits_80_columns(demo_summary: Summary) -> None:
    words = format_summary(demo_summary, find_all(demo_summary))
    assert max(map(len, words.splitlines())) <= 80
    lines = [" ".join(line.split()) for line in words.splitlines()]
    for line in (
        "demo: 39 of 40 runs completed, 1 failed",
        "seconds 800 ± 32 ms, n = 5",
        "seconds slower by 37 % (32 … 43), n = 5 + 5",
        "SY01 error runs failed or were cancelled",
    ):
        assert line in lines


def test_energy_has_its_own_sentence(energy_folder: Path) -> None:
    sentences = describe_answer(summarize(energy_folder))
    assert sentences[2].startswith(
        "Energy is not shown to differ; farthest apart with 2 clients instead of 1: hpl N=4000 uses "
    )
    assert sentences[2].endswith(" more energy.")


def test_a_screen_reader_finds_sections_names_and_the_way_past_the_contents(
    checked: Checker,
) -> None:
    """As Chromium's accessibility tree showed them: landmarks for sections only, a name for the rest."""
    assert not [a for _, a in checked.tags if a.get("role") == "region"]
    named = [a for tag, a in checked.tags if tag in ("figure", "nav") or a.get("role") == "group"]
    assert named and all(attrs.get("aria-label") for attrs in named)
    sections = [attrs for tag, attrs in checked.tags if tag == "section"]
    ids = [attrs["id"] for _, attrs in checked.tags if "id" in attrs]
    assert sections and all(attrs["aria-labelledby"] in ids for attrs in sections)
    assert len(ids) == len(set(ids))
    links = [str(attrs["href"]) for tag, attrs in checked.tags if tag == "a"]
    assert links[0] == "#answer"  # the skip link is the first stop of the keyboard
    assert all(link.removeprefix("#") in ids for link in links)
    assert not [a for _, a in checked.tags if int(a.get("tabindex") or 0) > 0]


def test_nothing_moves_by_itself() -> None:
    """So that prefers-reduced-motion has nothing to take away."""
    css = (
        importlib.resources.files("steelyard.analysis.report")
        .joinpath("report.css")
        .read_text("utf-8")
    )
    assert not re.findall(r"animation|transition|scroll-behavior|@keyframes", css)


def test_scaling_has_a_section_with_figures_for_both_widths(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    summary = summarize(synthetic.scaled().write(tmp_path))
    output = tmp_path / "r.html"
    write_report(summary, output)
    page = output.read_text(encoding="utf-8")
    section = page[page.index('<div id="scaling">') : page.index('id="conditions-title"')]
    assert "npb kernel=cg, seconds: 8 nodes against 1: " in html.unescape(section)
    assert section.count('class="drawing wide"') == section.count('class="drawing narrow"') == 2
    assert '<a href="#scaling">Scaling</a>' in page
    told = document(summary, find_all(summary))
    assert [one["over"] for one in told["scaling"]] == [["nodes"], ["nodes"]]
    assert {one["metric"] for one in told["optima"]} == {"seconds", "mops", "energy_j"}
