"""Network conditions in words, and the trials of the kernel."""

from __future__ import annotations

import pytest

from steelyard.wrappers.netem import kernel as netem_kernel


def test_a_module_that_no_kernel_has_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = ("tc", "qdisc", "add", "dev", "lo", "root", "steelyard")
    monkeypatch.setitem(netem_kernel.TRIALS, "sch_steelyard", wrong)
    found = netem_kernel.can("sch_steelyard")
    assert found.there in (False, None)  # None: this user may not even try
    if found.there is False:
        assert found.says.startswith("this kernel has no sch_steelyard: modprobe it")


def test_a_trial_that_says_something_else_is_no_answer() -> None:
    found = netem_kernel.tried("sch_netem", ["sh", "-c", "echo not permitted >&2; exit 1"])
    assert (found.there, found.says) == (None, "could not be tried as this user: not permitted")
    assert netem_kernel.tried("sch_netem", ["true"]).there is True
