"""Submitting when something is wrong: nothing is duplicated or lost; one line reports it."""

from __future__ import annotations

import os

import pytest
from tests.unit.submit.test_trouble import VARIABLES

from steelyard.wrappers.schedulers.slurm import command as slurm_command

Patch = pytest.MonkeyPatch


def test_slurms_programs_get_an_environment_of_our_own(monkeypatch: Patch) -> None:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SLURM_CONF", "/mine/slurm.conf")
    monkeypatch.setenv("HOME", "/home/me")
    words = slurm_command.run_once(["env"]).splitlines()
    found = dict(word.partition("=")[::2] for word in words)
    assert found["SLURM_CONF"] == "/mine/slurm.conf"
    assert (found["TZ"], found["LC_ALL"], found["SLURM_BITSTR_LEN"]) == ("UTC", "C.UTF-8", "0")
    assert (found["PATH"], found["HOME"]) == (os.environ["PATH"], "/home/me")
    assert not VARIABLES.keys() & found.keys() - {"TZ", "LC_ALL", "SLURM_BITSTR_LEN"}
