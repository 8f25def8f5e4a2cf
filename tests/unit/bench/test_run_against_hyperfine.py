"""Benchmarks run, and print their measurements."""

from __future__ import annotations

import json
import runpy
import shutil
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[3] / "bench"


@pytest.mark.parametrize(
    ("first", "bias", "least", "code"),
    [(True, 0.6, 0.1, 1), (True, -0.6, 0.1, 1), (True, 0.4, 0.6, 0), (False, 9.0, 0.1, 0), (False, 0.1, 0.6, 1)],
)  # fmt: skip
def test_a_bias_beyond_its_limit_is_an_exit_code(
    first: bool,
    bias: float,
    least: float,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The limit applies to medians at real-time priority, else to minima."""
    bench = runpy.run_path(str(BENCH / "run_against_hyperfine.py"))
    row = bench["row"]("true", "bare", [1.0], [1.0]) | {"bias_ms": bias, "bias_of_least_ms": least}
    told = bench["main"].__globals__
    monkeypatch.setitem(told, "measure", lambda *_: [row])
    monkeypatch.setitem(told, "go_first", lambda: first)
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/hyperfine")
    assert bench["main"]() == code
    said = capsys.readouterr()
    assert bool(json.loads(said.out.splitlines()[-1])["beyond"]) == bool(code) == bool(said.err)
