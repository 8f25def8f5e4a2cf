"""Samples as columns come back to the byte, whatever stands in them; thinned ones keep all totals."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.analysis.sources import packed_samples, thinned
from steelyard.facts.quantities import COLUMNS

DATA = Path(__file__).parents[2] / "data" / "records"
RECORDED = sorted(DATA.glob("*/*.csv"))
MANY = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None,
    derandomize=True,
)  # fmt: skip
CELLS = st.one_of(
    st.just(""),
    st.integers(0, 1 << 65).map(str),
    st.integers(0, 1 << 62).map(lambda n: f"{n // 10**6}.{n % 10**6:06d}"),
    st.sampled_from(["-1", "007", "1.5", "1e3", "nan", "x", ".", "1.", "1.000000"]),
)


def rows(text: bytes) -> list[dict[str, str]]:
    head, *lines = text.decode().splitlines()
    return [dict(zip(head.split(","), line.split(","), strict=True)) for line in lines]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.parent.name)
def test_what_was_recorded_comes_back(path: Path) -> None:
    text = path.read_bytes()
    blob = packed_samples.encoded(text)
    assert blob is not None and packed_samples.decoded(blob) == text
    assert len(blob) < len(text) * 0.7  # half of it was seen; of the shortest the header is most
    cut = text[:-20]
    blob = packed_samples.encoded(cut)
    assert blob is not None and packed_samples.decoded(blob) == cut


@MANY
@given(
    st.lists(st.text("ab_", min_size=1, max_size=3), min_size=1, max_size=4),
    st.lists(st.lists(CELLS, min_size=1, max_size=4), max_size=6),
    st.sampled_from(["", "1,2", "\n", "\r\n"]),
)
def test_anything_comes_back_or_stays_text(
    names: list[str], lines: list[list[str]], rest: str
) -> None:
    text = (
        ",".join(names) + "\n" + "".join(",".join(line) + "\n" for line in lines) + rest
    ).encode()
    blob = packed_samples.encoded(text)
    assert blob is None or packed_samples.decoded(blob) == text
    assert packed_samples.thinned(text, 30) is None, "no elapsed_s, no time"


@MANY
@given(st.integers(0, 3092), st.integers(0, 255), st.integers(0, 3093))
def test_what_is_damaged_is_told_or_reads_otherwise(place: int, byte: int, end: int) -> None:
    """No other error, no memory without end."""
    blob = packed_samples.encoded((DATA / "network" / "v1.1795270138.csv").read_bytes())
    assert blob is not None and len(blob) == 3093
    for bad in (blob[:place] + bytes([byte]) + blob[place + 1 :], blob[:end]):
        with contextlib.suppress(ValueError):
            assert isinstance(packed_samples.decoded(bad), bytes)
    for lines in (b"0", b"-1", b"99999999999999", b"x"):
        head, _, body = blob.partition(b"\n")
        with pytest.raises(ValueError, match="lines|invalid literal"):
            packed_samples.decoded(head + b"\n" + lines + b" " + body.partition(b" ")[2])


def test_pieces_are_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (DATA / "network" / "v1.1795270138.csv").read_bytes()
    whole = packed_samples.encoded(text)
    monkeypatch.setattr(packed_samples, "PIECE_BYTES", 100)
    monkeypatch.setattr(packed_samples, "PIECE_LINES", 3)
    assert packed_samples.encoded(text) == whole is not None
    assert packed_samples.decoded(whole) == text


@pytest.mark.parametrize("every_s", [0, 5, 30, 100_000])
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.parent.name)
def test_totals_of_thinned_samples_are_those_of_all(path: Path, every_s: int) -> None:
    """As collect computes them where a record was cut short: the largest of each column, which of a
    counter is its last; and the first line and the last are there."""
    text = path.read_bytes()
    fewer = packed_samples.thinned(text, every_s)
    assert fewer is not None
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
    assert {row.pop(thinned.COLUMN) for row in after} == {str(every_s)}
    assert [row for row in before if row in after] == after, "lines as they were, in their order"


def test_one_line_in_so_long_is_left() -> None:
    text = (DATA / "long" / "vm.1795546550.csv").read_bytes()
    fewer = packed_samples.thinned(text, 30)
    assert fewer is not None
    times = [float(row["elapsed_s"]) for row in rows(fewer)]
    spans = [int(time // 30) for time in times]
    assert set(spans) == set(range(31)), "none of the 15 minutes is without"
    assert len(times) == 34  # and those of the largest values, and the last
    assert packed_samples.thinned(fewer, 60) is None, "once is enough"
    assert packed_samples.thinned(text, 1) is not None  # some seconds have two


def test_what_loses_no_line_is_not_marked() -> None:
    text = b"unix_s,elapsed_s\n10.000000,0.000000\n40.000000,30.000000\n"
    assert packed_samples.thinned(text, 30) is None
    assert packed_samples.thinned(text, 0) is None


def test_readers_are_told(tmp_path: Path) -> None:
    path = tmp_path / "n1.1.csv"
    text = (DATA / "long" / "vm.1795546550.csv").read_bytes()
    assert thinned.told(path) is None is thinned.told(None)
    path.write_bytes(text)
    assert thinned.told(path) is None
    for every_s, word in ((30, "one in 30 s is left"), (0, "none is left between its ends")):
        path.write_bytes(packed_samples.thinned(text, every_s) or b"")
        assert word in (thinned.told(path) or "")
    path.write_bytes(b"elapsed_s,thinned_s\n")
    assert "none is left" in (thinned.told(path) or ""), "a header alone says so, too"
