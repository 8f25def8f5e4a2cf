"""Run by tests/failsafe/run.sh only, from a copy of tests/unit; it must fail: it starts a process."""

import subprocess


def test_planted() -> None:
    """What belongs under tests/system."""
    subprocess.run(["true"], check=True)
