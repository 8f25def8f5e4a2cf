"""steelyard run: measures a command here, with the real sampler."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.commands import cli
from steelyard.wrappers.run import measurement, results

Capture = pytest.CaptureFixture[str]
RATE = "expected a rate in Hz: 0 (totals only), or 0.001 to 1000"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--", "no-such-program-here"], 3, "no-such-program-here: no such program"),
        (["--tag", "novalue", "--", "true"], 2, "--tag novalue: allowed is KEY=VALUE"),
        (["--sample-rate", "9999", "--", "true"], 2, f"--sample-rate=9999: {RATE}"),
        (["--sample-rate", "nan", "--", "true"], 2, f"--sample-rate=nan: {RATE}"),
        (["--sample-rate", "1e-301", "--", "true"], 2, f"--sample-rate=1e-301: {RATE}"),
    ],
)
def test_wrong_words_get_one_line(
    words: list[str], code: int, message: str, capsys: Capture
) -> None:
    assert cli.main(["run", *words]) == code
    assert message in capsys.readouterr().err


def test_repeat_zero_is_wrong_usage(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["run", "--repeat", "0", "--", "true"])
    assert caught.value.code == 2
    assert "argument --repeat" in capsys.readouterr().err


def test_a_record_cut_short_gives_no_figures(tmp_path: Path) -> None:
    (tmp_path / "n.1.json").write_text(
        json.dumps(
            {"version": 1, "complete": False, "incomplete_reason": "disk full", "elapsed_s": 3.0}
        )
    )
    found = measurement.read_measurement(tmp_path, 1, 0)
    assert set(found.values.values()) == {None}
    assert found.missing["elapsed"] == "the record was cut short: disk full"


def test_a_record_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "n.1.json").write_text(json.dumps({"version": 2, "complete": True}))
    with pytest.raises(MissingError, match="records of version 2, this command reads version 1"):
        measurement.read_measurement(tmp_path, 1, 0)


def test_figures_read_as_in_the_report() -> None:
    """All of a row in one unit, and to the decimals that its spread allows."""

    def row(values: list[float], unit: str) -> tuple[str, ...]:
        runs = [measurement.Measurement(n, 0, None, {"x": v}, {}) for n, v in enumerate(values, 1)]
        return tuple(
            map(str, results.format_row(measurement.summarize_metric("x", unit, runs))[1:])
        )

    assert row([30430.0, 30410.0, 30450.0], "files_per_s") == (
        "30430 ± 20 files/s", "30380 … 30480", "30410 … 30450", "3",
    )  # fmt: skip
    assert row([0.0120, 0.0128, 0.0124], "s")[0] == "12.40 ± 0.40 ms"
    assert row([0.004122], "1") == ("0.004122", "None", "None", "1")
    assert row([0.0, 0.0], "bytes")[0] == "0 ± 0 B"


@pytest.mark.parametrize("count", ["0", "-1", "two", "1.5"])
def test_how_often_is_a_whole_number(count: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["run", f"--repeat={count}", "--", "true"])
    assert caught.value.code == 2
    assert f"expected a whole number from 1, found '{count}'" in capsys.readouterr().err


def test_no_value_is_not_zero() -> None:
    runs = [
        measurement.Measurement(
            1, 0, None, dict.fromkeys(measurement.METRICS), {"energy": "no RAPL"}
        )
    ]
    energy = next(one for one in measurement.summarize_runs(runs) if one.metric == "energy")
    assert (energy.mean, energy.min, energy.n, energy.reason) == (None, None, 0, "no RAPL")


def test_what_cannot_be_negative_has_no_negative_bound() -> None:
    """26 ms: -17.9 … 69.9 ms was reported."""
    runs = [
        measurement.Measurement(n, 0, None, {"elapsed_s": v}, {})
        for n, v in enumerate((0.0225, 0.0295), 1)
    ]
    found = measurement.summarize_metric("elapsed_s", "s", runs)
    assert found.low == 0.0 and found.high is not None and found.high > 0.0295


def test_a_figure_of_a_program_may_be_negative() -> None:
    values = [-1.0, 3.0, 2.0, 0.5]
    runs = [measurement.Measurement(n, 0, None, {"gain": v}, {}) for n, v in enumerate(values, 1)]
    found = measurement.summarize_metric("gain", None, runs, benchmark="app")
    half = 3.1824 * np.std(values, ddof=1) / 2  # Student's t with 3 degrees of freedom
    assert (found.low, found.high) == pytest.approx((1.125 - half, 1.125 + half), rel=1e-4)
    of_seconds = measurement.summarize_metric("gain", "s", runs[1:], benchmark="app")
    assert of_seconds.low == 0.0
