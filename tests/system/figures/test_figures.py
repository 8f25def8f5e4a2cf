"""Figures: what is in them, in numbers and words, and that their files can be read."""

from __future__ import annotations

import csv
import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType

import duckdb
import pytest

from steelyard.analysis.figures import drawing as figures
from steelyard.analysis.figures.bar_chart import draw_bars
from steelyard.analysis.figures.drawing import Drawing, make_slug
from steelyard.analysis.figures.run_series import draw_series
from steelyard.analysis.figures.time_series import compute_rates, draw_times
from steelyard.analysis.stats.basics import Interval
from steelyard.analysis.stats.number_format import choose_prefix, format_mean, format_quantity
from steelyard.analysis.store.database import FILE_NAME
from steelyard.analysis.summary.database_connection import open_database
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.summary import Summary, summarize

COPY = "filesystem test=large_file_copy"
WRITE = "filesystem test=small_file_write"


def rows_of(summary: Summary, variant: str, metric: str = "seconds") -> list[Row]:
    return [r for r in summary.rows if (r.group.variant, r.metric.name) == (variant, metric)]


def texts(drawing: Drawing) -> list[str]:
    root = ET.fromstring(figures.inline_svg(drawing))
    return ["".join(node.itertext()).strip() for node in root.iter() if node.tag == "text"]


def test_bars_show_mean_and_n_and_name_the_unit(demo_summary: Summary) -> None:
    drawing = draw_bars(demo_summary, rows_of(demo_summary, COPY))
    assert {"0.800 (n = 5)", "1.097 (n = 5)"} <= set(texts(drawing))
    assert "seconds (s), lower is better" in texts(drawing)
    assert "n = 5 runs" in drawing.caption
    assert "95 % confidence interval" in drawing.caption


def test_an_interval_below_0_is_not_cut(synthetic: ModuleType, tmp_path: Path) -> None:
    maker = synthetic.StudyMaker("wide", {"clients": [1]}, {"clients": 1})
    for number, value in enumerate((0.1, 3.0, 0.2), start=1):
        maker.result(maker.run("app", {}, {"clients": 1}, number), "seconds", value, "1")
    summary = summarize(maker.write(tmp_path))
    (row,) = rows_of(summary, "app")
    assert row.interval is not None and row.interval.low is not None and row.interval.low < 0
    axes = draw_bars(summary, [row]).figure.axes[0]
    assert axes.get_xlim()[0] < row.interval.low


def test_text_in_a_figure_keeps_all_its_digits(demo_summary: Summary) -> None:
    drawing = draw_bars(demo_summary, rows_of(demo_summary, COPY))
    svg = figures.inline_svg(drawing)
    assert "1.097 (n = 5)" in svg  # cut to 1.09 by anything that shortens coordinates blindly
    assert not re.search(r'="[^"]*\d\.\d{3}', re.sub(r">[^<]*<", "><", svg))


def test_small_values_get_a_fitting_unit(demo_summary: Summary) -> None:
    drawing = draw_bars(demo_summary, rows_of(demo_summary, WRITE))
    assert "seconds (ms), lower is better" in texts(drawing)


def test_series_mark_outliers_and_list_every_run(demo_summary: Summary) -> None:
    drawing = draw_series(demo_summary, rows_of(demo_summary, WRITE))
    assert "Rings mark 1 outlier (" in drawing.caption
    assert "(n = 5 runs a condition)" in drawing.caption
    assert len(drawing.rows) == 10
    assert [row[5] for row in drawing.rows if row[-1] == 1] == ["filesystem-d00f3584-004"]


def test_series_of_many_conditions_say_what_they_leave_out(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    summary = summarize(synthetic.large(runs=300, conditions=60).write(tmp_path))
    drawing = draw_series(summary, rows_of(summary, "xrootd"))
    assert "24 of 60 conditions" in drawing.caption
    assert len(drawing.rows) == 300


def test_time_shows_power_where_there_is_energy(energy_folder: Path) -> None:
    drawing = dict(draw_times(summarize(energy_folder), [COPY]))[COPY]
    assert "power (W)" in texts(drawing)
    assert drawing.caption.startswith("Power of the node, CPUs")
    index = drawing.columns.index("power_w")
    # The jobs of the synthetic study draw 110 W x (0.6 + 0.4 x CPUs busy): 0.4, later 0.95 CPUs.
    assert {round(row[index], 3) for row in drawing.rows} == {83.6, 107.8}  # type: ignore[call-overload]


def test_time_says_why_there_is_no_power(demo_summary: Summary) -> None:
    drawing = dict(draw_times(demo_summary, [COPY]))[COPY]
    assert "power (W)" not in texts(drawing)
    assert {"CPUs busy", "network (MB/s)"} <= set(texts(drawing))
    assert drawing.caption.endswith("No power: no RAPL: /sys/class/powercap is absent.")
    index = drawing.columns.index("power_w")
    assert {row[index] for row in drawing.rows} == {None}


def short_and_long(synthetic: ModuleType, folder: Path, seconds: tuple[float, float]) -> Summary:
    """One run with each number of clients; in short ones CPU time is read at the very end alone."""
    maker = synthetic.StudyMaker("short", {"clients": [1, 2]}, {"clients": 1})
    for clients, length in enumerate(seconds, start=1):
        run = maker.run("app", {}, {"clients": clients}, 1, elapsed_s=length)
        maker.result(run, "seconds", length, "s")
        maker.record(run, "n1", length, samples=9)
        maker.samples(run, "n1", 9.0)
        for place, sample in enumerate(maker.rows["samples"][-10:]):
            sample["elapsed_s"] *= length / 9
            if length < 1 and place < 8:
                sample["cpu_s"] = None
    return summarize(maker.write(folder))


def test_a_run_too_short_for_a_line_is_left_out_and_named(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    """Its axes were blank, or had a stub."""
    one = dict(draw_times(short_and_long(synthetic, tmp_path / "a", (9.0, 0.6)), ["app"]))["app"]
    assert one.caption.endswith("clients=2 is left out: its run of 0.6 s is too short for a line.")
    assert len(one.figure.axes) == len({axes.get_ylabel() for axes in one.figure.axes})
    assert draw_times(short_and_long(synthetic, tmp_path / "b", (0.5, 0.6)), ["app"]) == []
    both = dict(draw_times(short_and_long(synthetic, tmp_path / "c", (9.0, 8.0)), ["app"]))["app"]
    assert "left out" not in both.caption


def test_rates_are_differences_and_a_gap_stays_a_gap() -> None:
    lines = [(0.0, 0.0, None), (1.0, 100.0, None), (3.0, 301.0, 1.0), (4.0, 300.5, 5.0)]
    assert compute_rates(lines, by_timer=False) == [
        (0.0, 1.0, (100.0, None)),
        (1.0, 3.0, (100.5, None)),
        (3.0, 4.0, (-0.5, 4.0)),
    ]


@pytest.mark.parametrize("by_timer", [True, False])
def test_what_repeats_a_reading_is_no_time_without_power(by_timer: bool) -> None:
    """Ten samples per second of a meter that changes each half second.

    Bytes are read once per second with a timer. Ten times the power for a tenth of the time, and
    none in between, was drawn.
    """
    lines = [(n / 10, 20.0 * (n // 5), n / 10, 800.0 * (n // 10), 0.0) for n in range(41)]
    found = compute_rates(lines, by_timer)
    assert {round(power, 6) for _, _, (power, *_) in found} == {40.0}
    assert {round(cpus, 6) for _, _, (_, cpus, *_) in found} == {1.0}
    received = [value for _, _, (_, _, value, _) in found]
    assert {round(value, 6) for value in received} == ({800.0} if by_timer else {0.0, 8000.0})
    assert {value for *_, (*_, value) in found} == {0.0}


def test_a_last_sample_right_after_another_is_no_period_of_its_own() -> None:
    lines = [(0.0, 0.0), (1.0, 1.0), (2.0, 2.0), (2.001, 2.5)]  # a child was reaped in that 1 ms
    assert compute_rates(lines, by_timer=False)[-1] == (1.0, 2.001, (pytest.approx(1.5 / 1.001),))
    assert compute_rates([(0.0, 0.0), (0.001, 1.0)], by_timer=False) == [(0.0, 0.001, (1000.0,))]


def test_long_samples_are_put_together_without_losing_the_sum() -> None:
    lines = [(float(i), 2.0 * i) for i in range(100_001)]
    found = compute_rates(lines, by_timer=False)
    assert len(found) <= 700
    assert sum((end - start) * values[0] for start, end, values in found) == pytest.approx(200_000)  # type: ignore[operator]


def test_files_of_a_figure(demo_summary: Summary, tmp_path: Path) -> None:
    drawing = draw_bars(demo_summary, rows_of(demo_summary, COPY))
    paths = figures.save(drawing, tmp_path / "figures")
    assert [path.suffix for path in paths] == [".svg", ".pdf", ".png", ".csv"]
    heads = [path.read_bytes()[:8] for path in paths]
    assert heads[1].startswith(b"%PDF-") and heads[2] == b"\x89PNG\r\n\x1a\n"
    ET.parse(paths[0])
    with paths[3].open(newline="", encoding="utf-8") as lines:
        table = list(csv.DictReader(lines))
    found = rows_of(demo_summary, COPY)[1].interval
    assert found is not None
    assert table[1]["condition"] == "clients=2"
    assert (float(table[1]["mean"]), int(table[1]["n"])) == (found.mean, 5)
    assert table[1]["unit"] == "s"


def test_the_same_data_give_the_same_files(demo_summary: Summary, tmp_path: Path) -> None:
    rows = rows_of(demo_summary, COPY)
    first, second = (
        figures.save(draw_bars(demo_summary, rows), tmp_path / name) for name in ("a", "b")
    )
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]


def test_one_run_has_an_empty_cell_and_no_interval(synthetic: ModuleType, tmp_path: Path) -> None:
    maker = synthetic.StudyMaker("one", {"clients": [1]}, {"clients": 1})
    maker.result(maker.run("x", {}, {"clients": 1}, 1), "seconds", 2.5, "s")
    summary = summarize(maker.write(tmp_path))
    drawing = draw_bars(summary, rows_of(summary, "x"))
    assert "2.500 (n = 1)" in texts(drawing)
    assert drawing.rows[0][-3:] == (2.5, None, None)


def test_a_condition_without_values_says_so(synthetic: ModuleType, tmp_path: Path) -> None:
    maker = synthetic.StudyMaker("none", {"clients": [1, 2]}, {"clients": 1})
    maker.result(maker.run("x", {}, {"clients": 1}, 1), "seconds", 2.5, "s")
    maker.run("x", {}, {"clients": 2}, 1, state="failed")
    summary = summarize(maker.write(tmp_path))
    for draw in (draw_bars, draw_series):
        assert "no value" in texts(draw(summary, rows_of(summary, "x")))


def test_ids_of_two_figures_do_not_meet(demo_summary: Summary) -> None:
    ids = []
    for variant in (COPY, WRITE):
        svg = figures.inline_svg(draw_series(demo_summary, rows_of(demo_summary, variant)))
        used = {a or b for a, b in re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', svg)}
        ids.append(set(re.findall(r' id="([^"]+)"', svg)))
        assert used == ids[-1]
    assert not ids[0] & ids[1]


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (0.0123, "s", "12.30 ms"),
        (250e6, "bytes", "250 MB"),
        (1.5e9, "bytes_per_s", "1.500 GB/s"),
        (1531.2, "J", "1.531 kJ"),
        (0.0, "bytes", "0 B"),
        (-0.5, "s", "−500 ms"),
        (12.5, "files_per_s", "12.50 files/s"),
        (3.0, None, "3"),
        (None, "s", "–"),
    ],
)
def test_quantities(value: float | None, unit: str | None, words: str) -> None:
    assert format_quantity(value, unit) == words


def test_mean_and_interval_share_unit_and_decimals() -> None:
    assert format_mean(Interval(0.8003, 0.7684, 0.8322, 5), "s") == "800 ± 32 ms"
    assert format_mean(Interval(38.09, 37.80, 38.38, 5), "Gflop/s") == "38.09 ± 0.29 Gflop/s"
    assert format_mean(Interval(2.5, None, None, 1), "s") == "2.500 s"
    assert choose_prefix(None, "bytes") == (1.0, "B")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("zip level=-1", "zip level=1"),
        ("copy file=é", "copy file=è"),
        (f"url=root://{'host/' * 30}a.root", f"url=root://{'host/' * 30}b.root"),
    ],
)
def test_files_of_two_variants_never_have_one_name(one: str, other: str) -> None:
    names = [make_slug("bars", variant, "seconds") for variant in (one, other)]
    assert names[0] != names[1]
    assert all(re.fullmatch(r"bars-[a-z0-9-]{1,115}", name) for name in names)


def test_plain_names_stay_as_they_read() -> None:
    assert make_slug("bars", "hpl N=4000", "gflops") == "bars-hpl-n-4000-gflops"
    assert (
        make_slug("bars", "filesystem test=large_file_copy")
        == "bars-filesystem-test-large-file-copy"
    )


def test_time_shows_a_link_that_varied(energy_folder: Path, tmp_path: Path) -> None:
    """It is below the rest, as long as each step lasted; empty if a trace does not state it."""
    folder = shutil.copytree(energy_folder, tmp_path / "study")
    with open_database(folder) as connection:
        begins = connection.execute(
            "SELECT min(unix_s - elapsed_s), run_id FROM samples GROUP BY run_id"
        ).fetchall()
    told = "{{'unix_s': {} + ?, 'delay_s': {}, 'rate_bit_per_s': NULL, 'loss': NULL}}"
    steps = f"[{told.format(-0.5, 0.02)}, {told.format(1, 0.08)}]"
    with duckdb.connect(str(folder / FILE_NAME)) as connection:
        connection.executemany(
            "UPDATE records SET record = json_merge_patch(record, to_json("
            f"{{'network_conditions': {{'trace': {{'step_log': {steps}}}}}}})) WHERE run_id = ?",
            [(begun, begun, run) for begun, run in begins],
        )
    drawing = dict(draw_times(summarize(folder), [COPY]))[COPY]
    assert "delay (ms)" in texts(drawing)
    assert not {"rate (Mbit/s)", "loss (%)"} & set(texts(drawing))
    assert "the link of a trace as the kernel was told" in drawing.caption
    (axes,) = (a for a in drawing.figure.axes if a.get_ylabel() == "delay (ms)")
    (line,) = axes.lines
    assert list(line.get_ydata()) == [20, 80, 80]
    times = [float(time) for time in line.get_xdata()]
    assert times[0] == 0 and times[1] == pytest.approx(1, abs=0.3) and times[2] > 1.5
