"""The answers that unit tests get for `steelyard-node netem parse` are the program's."""

from __future__ import annotations

import pytest
from tests import record_netem

ANSWERS = record_netem.read_answers()


@pytest.mark.parametrize("spec", ANSWERS)
def test_a_recorded_answer_is_the_programs(spec: str) -> None:
    assert record_netem.ask_program(spec) == ANSWERS[spec]
