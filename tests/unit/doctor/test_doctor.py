"""What `steelyard doctor` advises where a benchmark's needs are not met."""

from __future__ import annotations

import importlib.util

import pytest

from steelyard.wrappers.base import programs
from steelyard.wrappers.commands import doctor as cmd_doctor


def test_what_is_missing_has_a_remedy_that_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "find_program", lambda name: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    advice = {check.found: check.advice or "" for check in cmd_doctor.benchmark_checks()}
    assert advice["iozone was not found"].endswith(": put it on PATH")  # we do not build it
    assert advice["fio was not found"].endswith(": apt install fio")
    fstest = advice["steelyard-fstest was not found"]
    assert "the wheel of Steelyard for this platform, or run `make" in fstest
    assert "wheel" not in advice["steelyard-stream was not found"]  # it is not in the wheel
    assert "pip install" in advice["the Python module mpi4py was not found"]
    assert len({found for found in advice if "Python module" in found}) == 4


def test_a_module_that_is_there_is_told_with_its_place() -> None:
    check = cmd_doctor.presence_check("benchmark x", "y", "y: /z", "get it")
    assert (check.state, check.found, check.advice) == ("ok", "y: /z", "")
