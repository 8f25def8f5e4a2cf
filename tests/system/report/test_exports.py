"""`steelyard report --export`: the same numbers in every format."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from types import ModuleType

import duckdb
import pytest

from steelyard.analysis.findings.registry import find_all
from steelyard.analysis.report.export import (
    RUNS,
    WRITERS,
    build_study_content,
    document,
    export_tables,
)
from steelyard.analysis.report.latex_tables import build_latex_tables, escape_latex
from steelyard.analysis.summary.summary import Summary
from steelyard.wrappers.commands.cli import main
from steelyard.wrappers.commands.report import EXPORTS

from ..summary.test_latency_share import BYTES, FAR, add_runs

FORMATS = ("csv", "parquet", "json", "latex")
NUMERIC = (
    "slopes",
    "tolerances",
    "nodes",
    "scaling",
    "scaling_laws",
    "optima",
    "shares",
)  # need a factor of numbers or nodes
RELATIONS = ("means", "runs", "values", *NUMERIC, "findings")


@pytest.fixture(scope="module")
def folder(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("exports") / "r.html"
    arguments = [str(demo_folder), "-o", str(output), "--export", ",".join(FORMATS)]
    assert main(["report", *arguments]) == 0
    return output.parent / "tables"


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def heading(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()[0].split(",")


def test_csv_and_parquet_hold_the_same_rows(folder: Path, demo_summary: Summary) -> None:
    for name in RELATIONS:
        relation = duckdb.sql(f"SELECT * FROM '{folder}/{name}.parquet'")
        rows = relation.fetchall()
        lines = read_csv(folder / f"{name}.csv")
        assert heading(folder / f"{name}.csv") == relation.columns
        assert len(lines) == len(rows)
        assert (len(rows) > 0) == (name not in NUMERIC)  # nothing has 3 levels here
    assert len(read_csv(folder / "runs.csv")) == len(demo_summary.data.runs)
    assert list(read_csv(folder / "runs.csv")[0]) == list(RUNS)


def test_missing_is_empty_and_null_and_never_0(folder: Path) -> None:
    (line,) = [
        line
        for line in read_csv(folder / "means.csv")
        if (line["variant"], line["condition"], line["metric"])
        == ("hpl N=4000", "clients=1", "energy_j")
    ]
    assert (line["n"], line["mean"], line["low"]) == ("0", "", "")
    query = f"SELECT mean FROM '{folder}/means.parquet' WHERE metric = 'energy_j' AND n = 0"
    assert set(duckdb.sql(query).fetchall()) == {(None,)}


def test_values_add_up_to_the_means(folder: Path) -> None:
    """A reader who starts from the values gets the means of the report; of rates the harmonic ones."""
    off = duckdb.sql(
        f"""
        SELECT m.variant FROM '{folder}/means.parquet' AS m JOIN (
            SELECT variant, condition, metric, avg(value) AS mean, count(*) AS n,
                1 / avg(1 / nullif(value, 0)) AS harmonic
            FROM '{folder}/values.parquet' GROUP BY ALL
        ) AS v USING (variant, condition, metric)
        WHERE m.n <> v.n OR abs(m.mean - CASE WHEN m.unit LIKE '%/s'
            OR m.unit LIKE '%_per_s' THEN v.harmonic ELSE v.mean END) > 1e-9 * abs(m.mean)
        """
    ).fetchall()
    assert off == []


def test_json_is_what_the_command_prints(folder: Path, demo_summary: Summary) -> None:
    read = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert read == json.loads(json.dumps(document(demo_summary, find_all(demo_summary))))


@pytest.fixture
def wan(synthetic: ModuleType, tmp_path: Path) -> Path:
    """Make three delays, with bulk transfers in the runs: slopes, shares of two differences."""
    levels = ["none", FAR, "delay=50ms"]
    maker = synthetic.StudyMaker("wan", {"network": levels}, {"network": "none"})
    for number in range(1, 7):
        for far, level in enumerate(levels):
            noise = 1 + 0.01 * (number * 5 % 7) + 0.002 * far
            add_runs(maker, number, level, (10 + 50 * far) * noise, 100e6 / (1 + far), BYTES)
    folder: Path = maker.write(tmp_path)
    return folder


def test_slopes_and_shares_are_those_of_the_json(wan: Path, tmp_path: Path) -> None:
    output = tmp_path / "r.html"
    assert main(["report", str(wan), "-o", str(output), "--export", ",".join(FORMATS)]) == 0
    told = json.loads((tmp_path / "tables" / "report.json").read_text(encoding="utf-8"))
    slopes = duckdb.sql(
        f"""
        SELECT variant, metric, factor, per, slope, low, high, n, levels, blocks, p_holm,
            break_place FROM '{tmp_path}/tables/slopes.parquet'
        """
    ).fetchall()
    names = ("variant", "metric", "factor", "per", "slope", "low", "high", "n", "levels", "blocks")
    assert slopes == [
        (*(one[name] for name in names), one["p_holm"], (one["break"] or {}).get("place"))
        for one in told["slopes"]
    ]
    assert any(row[1] == "seconds" and row[4] > 0 for row in slopes)
    shares = read_csv(tmp_path / "tables" / "shares.csv")
    splits = told["latency_and_throughput"]["splits"]
    assert len(shares) == len(splits) == 2
    for line, split in zip(shares, splits, strict=True):
        assert (line["condition"], line["holds"]) == (split["condition"], str(split["holds"]))
        assert float(line["latency_share_low"]) == split["latency_share"]["low"]
        assert float(line["difference_s_value"]) == split["difference_s"]["value"]
        assert [int(line["n_condition"]), int(line["n_baseline"])] == split["n"]
        assert float(line["bytes_per_s_baseline"]) == split["bytes_per_s"][1]
    for name in ("slopes", "shares"):
        text = (tmp_path / "tables" / f"{name}.tex").read_text(encoding="utf-8")
        check_latex(text)
        assert "ms of delay" in text if name == "slopes" else "transfers" in text


def check_latex(text: str) -> None:
    """Braces and environments close, no bare special character, as many cells in every row."""
    plain = re.sub(r"\\[\\{}$&#%_]", "", text.replace(r"\\" + "\n", "\n"))
    body = "\n".join(line for line in plain.splitlines() if not line.startswith("%"))
    assert body.count("{") == body.count("}")
    assert body.count("$") % 2 == 0
    assert not re.search(r"(?<!\\)[#%^~]", re.sub(r"\\text\w+", "", body))
    assert re.findall(r"\\begin\{(\w+)\}", body) == re.findall(r"\\end\{(\w+)\}", body)
    (columns,) = re.findall(r"\\begin\{longtable\}\{((?:[lr]|p\{[.\d]+\\linewidth\})+)\}", body)
    columns = len(re.findall(r"[lr]|p\{[^}]*\}", columns))
    rows = [line for line in body.splitlines() if " & " in line]
    assert {line.count(" & ") + 1 for line in rows} == {columns}
    assert all(body.count(rule) == 1 for rule in (r"\toprule", r"\midrule", r"\bottomrule"))
    assert all(ord(letter) < 128 for letter in body)


def test_latex_is_well_formed(folder: Path) -> None:
    files = sorted(folder.glob("*.tex"))
    assert len(files) == 8
    for file in files:
        check_latex(file.read_text(encoding="utf-8"))
    text = (folder / "overheads-filesystem-test-large-file-copy.tex").read_text(encoding="utf-8")
    assert (
        r"clients=2 & seconds & 37 & 32 \ldots{} 43 & \textless{} 0.0001 & 5 + 5 & worse \\" in text
    )
    assert r"test=large\_file\_copy" in text


def test_the_latex_checker_sees_a_fault(demo_summary: Summary) -> None:
    text = next(iter(build_latex_tables(demo_summary).values()))
    check_latex(text)
    for fault in (text.replace(r"\_", "#_"), text.replace(" & ", " ", 1), text + "{"):
        with pytest.raises(AssertionError):
            check_latex(fault)


def test_names_are_text_in_latex() -> None:
    assert escape_latex(r"50% of $x_1 & \y{z}") == (r"50\% of \$x\_1 \& \textbackslash{}y\{z\}")


def test_the_command_knows_every_format() -> None:
    assert tuple(WRITERS) == EXPORTS == FORMATS


def test_an_unknown_export_lists_the_known_ones(
    demo_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "r.html")
    assert main(["report", str(demo_folder), "-o", output, "--export", "xlsx"]) == 2
    assert "unknown 'xlsx', allowed: csv, parquet, json, latex" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(demo_summary: Summary, tmp_path: Path) -> None:
    (tmp_path / "tables").write_text("a file", encoding="utf-8")
    from steelyard.analysis.base.errors import MissingError

    with pytest.raises(MissingError, match="tables cannot be written"):
        export_tables(build_study_content(demo_summary, []), tmp_path / "tables", ("csv",))
