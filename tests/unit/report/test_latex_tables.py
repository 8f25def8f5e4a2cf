"""LaTeX tables: what a real pdflatex showed to go wrong with names, and with tables too wide."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

from steelyard.analysis.report.latex_tables import (
    LINE,
    build_latex_tables,
    compute_column_shares,
    escape_latex,
)
from steelyard.analysis.summary.summary import summarize


def test_no_sign_of_a_name_becomes_another_in_print() -> None:
    r"""As pdflatex showed them: `|` and `--` are dashes, and `95` stood alone before its `%`."""
    assert escape_latex("a|b --c=1---2") == r"a\textbar{}b -{}-c=1-{}-{}-2"
    assert escape_latex("its 95 % interval, 5% – 6") == r"its 95\,\% interval, 5\% \textendash{} 6"


def test_long_conditions_break_and_the_table_stays_on_the_page(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    levels = ["bare", "podman:registry.example.org/group/debian:12-slim_%&#~^\\{}µé"]
    maker = synthetic.StudyMaker("tex", {"launcher": levels}, {"launcher": "bare"})
    for number, level in enumerate(levels * 3):
        run = maker.run("my_app", {}, {"launcher": level}, number // 2 + 1)
        maker.result(run, "bytes", [9e5, 2e6][number % 2] + number, "bytes")
    texts = build_latex_tables(summarize(maker.write(tmp_path)))
    means = texts["means-my-app"]
    assert re.search(r"\{longtable\}\{p\{0\.\d+\\linewidth\}llrrrrr\}", means)
    broken_line = (
        r"\raggedright launcher=\allowbreak{}podman:\allowbreak{}registry.example.org/\allowbreak{}"
        r"group/\allowbreak{}debian:\allowbreak{}12-\allowbreak{}slim\_\%\&\#\textasciitilde{}"
        r"\textasciicircum{}\textbackslash{}\{\}\textmu{}é & bytes & MB & 2.00"
    )
    assert broken_line in means
    assert r"launcher=\allowbreak{}bare (baseline) & bytes & MB & 0.90" in means  # one unit
    assert all(row.endswith(r"\tabularnewline") for row in means.splitlines() if "& MB" in row)


def test_only_text_breaks_and_only_where_the_page_has_no_room() -> None:
    assert compute_column_shares([10, 20, 30], "llr") == [0.0, 0.0, 0.0]
    shares = compute_column_shares([60, 10, 30, 60], "llrl")
    assert shares[1:3] == [0.0, 0.0]
    assert shares[0] == shares[3] > 0
    assert sum(shares) < 1 - 40 / LINE
