"""Network conditions in words, and the trials of the kernel."""

from __future__ import annotations

import pytest

from steelyard.wrappers.netem import kernel_support


def test_a_module_that_no_kernel_has_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = ("tc", "qdisc", "add", "dev", "lo", "root", "steelyard")
    monkeypatch.setitem(kernel_support.TRIALS, "sch_steelyard", wrong)
    found = kernel_support.try_module("sch_steelyard")
    assert found.there in (False, None)  # None: this user may not even try
    if found.there is False:
        assert found.message.startswith("this kernel has no sch_steelyard: modprobe it")


def test_a_trial_that_says_something_else_is_no_answer() -> None:
    found = kernel_support.run_trial("sch_netem", ["sh", "-c", "echo not permitted >&2; exit 1"])
    assert (found.there, found.message) == (None, "could not be tried as this user: not permitted")
    assert kernel_support.run_trial("sch_netem", ["true"]).there is True
