"""Run by tests/failsafe/run.sh only; it must fail."""


def test_planted() -> None:
    """A failure that every runner has to report."""
    assert 1 + 1 == 3
