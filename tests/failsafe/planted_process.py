"""Run by tests/failsafe/run.sh only, from a copy of tests/unit; it must fail: it starts a process."""

import subprocess


def test_planted() -> None:
    """This test belongs below tests/system."""
    subprocess.run(["true"], check=True)
