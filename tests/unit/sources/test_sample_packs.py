"""Samples as rows come back to the byte, whatever is in them; thinned ones keep all totals."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.analysis.sources import sample_csv, sample_packs
from steelyard.analysis.sources.sample_packs import Frame, SampleTable, split_file
from steelyard.facts.quantities import COLUMNS

DATA = Path(__file__).parents[2] / "data" / "records"
RECORDED = sorted(DATA.glob("*/*.csv"))
LONG = (DATA / "long" / "vm.1795546550.csv").read_bytes()
MANY = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None,
    derandomize=True,
)  # fmt: skip
CELLS = st.one_of(
    st.just(""),
    st.integers(0, 1 << 65).map(str),
    st.integers(0, 1 << 62).map(lambda n: f"{n // 10**6}.{n % 10**6:06d}"),
    st.sampled_from(["-1", "007", "1.5", "1e3", "nan", "x", ".", "1.", "1.000000", " 1", "'", '"']),
)
Frames = list[Frame]


def through(contents: list[bytes], every_s: int | None = None) -> tuple[list[bytes], Frames]:
    """Files out of one table of their rows; what of them is in no row."""
    keys = [("7", f"n{number}", 1) for number in range(len(contents))]
    with duckdb.connect() as engine:
        engine.execute("SET threads = 1")
        files = [split_file(key, content) for key, content in zip(keys, contents, strict=True)]
        frames = SampleTable(engine).insert(files, every_s)
        return list(sample_packs.read_texts(engine, "samples", keys, frames)), frames


def rows(text: bytes) -> list[dict[str, str]]:
    head, *lines = text.decode().splitlines()
    return [dict(zip(head.split(","), line.split(","), strict=True)) for line in lines]


def test_what_was_recorded_comes_back_out_of_rows() -> None:
    contents = [path.read_bytes() for path in RECORDED]
    cut = [content[:-20] for content in contents]
    back, frames = through(contents + cut)
    assert back == contents + cut and len(contents) > 3
    assert [frame.lines for frame in frames] == [text.count(b"\n") - 1 for text in back]
    assert {frame.rest for frame in frames[: len(contents)]} == {b""}
    assert b"" not in {frame.rest for frame in frames[len(contents) :]}


@pytest.mark.thorough
@MANY
@given(
    st.lists(st.text('ab_:"é', min_size=1, max_size=4), min_size=1, max_size=4),
    st.lists(st.lists(CELLS, min_size=1, max_size=4), max_size=6),
    st.sampled_from(["", "1,2", "\n", "\r\n", "\0"]),
)
def test_anything_comes_back_as_rows_or_as_it_is(
    names: list[str], lines: list[list[str]], rest: str
) -> None:
    text = (
        ",".join(names) + "\n" + "".join(",".join(line) + "\n" for line in lines) + rest
    ).encode()
    back, _ = through([text, LONG, text.upper()])
    assert back == [text, LONG, text.upper()]
    assert sample_packs.thin(text, 30) == text, "no elapsed_s, no time"


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\n", b"elapsed_s", b"elapsed_s\xff\n1.000000\n", b"elapsed_s,elapsed_s\n1,1\n",
        b"elapsed_s,job_id\n1.000000,1\n", b"elapsed_s,rx_bytes:eth0,rx_bytes:ETH0\n1.000000,1,1\n",
        b"elapsed_s\n1.0\n", b"elapsed_s\n1.0000000\n", b"elapsed_s\n1.000000,\n", b"elapsed_s,a\n1\n",
        b"processes\n007\n", b"processes\n9223372036854775808\n", b"processes\n1.0\n",
        b"number,places,text\n1,1,1\n", b"start_unix_s\n1.000000\n", b"\"\n1\n2,\n",
        b",".join(b"n%d" % n for n in range(999)) + b"\n" + b",".join([b"1"] * 999) + b"\n",
        b"processes\n" + b"\n" * 1_000_001,
    ],
)  # fmt: skip
def test_what_is_not_as_the_sampler_writes_it_is_kept_as_it_is(content: bytes) -> None:
    back, frames = through([content, LONG])
    assert back == [content, LONG]
    assert [frame.header is None for frame in frames] == [True, False]


def test_devices_whose_names_differ_by_case_alone_are_not_mixed() -> None:
    contents = [
        b"elapsed_s,rx_bytes:%s\n1.000000,%d\n" % pair for pair in ((b"eth0", 1), (b"Eth0", 2))
    ]
    assert through(contents)[0] == contents


def test_missing_rows_are_reported() -> None:
    key = ("7", "n1", 1)
    with duckdb.connect() as engine:
        frames = SampleTable(engine).insert([split_file(key, LONG)], None)
        engine.execute("DELETE FROM samples WHERE line = 5")
        with pytest.raises(ValueError, match=f"{frames[0].lines - 1} of {frames[0].lines} lines"):
            list(sample_packs.read_texts(engine, "samples", [key], frames))


def test_the_unit_of_a_name_says_its_type() -> None:
    for column in COLUMNS:
        for name in (column.name, f"{column.name}:device"):
            is_real = sample_packs.column_type(name) == sample_packs.REAL
            assert is_real == column.is_real, name
    assert sample_packs.column_type(sample_csv.THINNED_COLUMN) == sample_packs.WHOLE


@pytest.mark.parametrize("every_s", [0, 5, 30, 100_000])
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.parent.name)
def test_totals_of_thinned_samples_are_those_of_all(path: Path, every_s: int) -> None:
    """As collect computes them where a record was cut short: the largest of each column, which of a
    counter is its last; and the first line and the last are there."""
    text = path.read_bytes()
    fewer = sample_packs.thin(text, every_s)
    assert fewer != text
    before, after = rows(text), rows(fewer)
    assert (after[0]["elapsed_s"], after[-1]["elapsed_s"]) == ("0.000000", before[-1]["elapsed_s"])
    for column in (column.name for column in COLUMNS if column.name in before[0]):
        if column == "rtt_s":
            continue  # no total is made of it: the record has its own
        largest = [
            max((float(row[column]) for row in lines if row[column]), default=None)
            for lines in (before, after)
        ]
        assert largest[0] == largest[1], column
    assert {row.pop(sample_csv.THINNED_COLUMN) for row in after} == {str(every_s)}
    assert [row for row in before if row in after] == after, "lines as they were, in their order"


def test_one_line_in_so_long_is_left() -> None:
    fewer = sample_packs.thin(LONG, 30)
    times = [float(row["elapsed_s"]) for row in rows(fewer)]
    spans = [int(time // 30) for time in times]
    assert set(spans) == set(range(31)), "none of the 15 minutes is without"
    assert len(times) == 34  # and those of the largest values, and the last
    assert sample_packs.thin(fewer, 60) == fewer, "once is enough"
    assert sample_packs.thin(LONG, 1) != LONG  # some seconds have two


def test_what_loses_no_line_is_not_marked() -> None:
    text = b"unix_s,elapsed_s\n10.000000,0.000000\n40.000000,30.000000\n"
    assert sample_packs.thin(text, 30) == text
    assert sample_packs.thin(text, 0) == text


def test_readers_are_told(tmp_path: Path) -> None:
    path = tmp_path / "n1.1.csv"
    assert sample_csv.read_thinning_note(path) is None is sample_csv.read_thinning_note(None)
    path.write_bytes(LONG)
    assert sample_csv.read_thinning_note(path) is None
    for every_s, word in ((30, "one in 30 s is left"), (0, "none is left between its ends")):
        path.write_bytes(sample_packs.thin(LONG, every_s))
        assert word in (sample_csv.read_thinning_note(path) or "")
    path.write_bytes(b"elapsed_s,thinned_s\n")
    assert "none is left" in (sample_csv.read_thinning_note(path) or ""), (
        "a header alone says so, too"
    )
