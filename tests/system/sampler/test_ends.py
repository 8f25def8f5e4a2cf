"""Who ends the sampler: a message, or the end of whoever is watched; and what the record says."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

GONE = "the process that reports the job's end is gone"


@pytest.fixture
def step() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two processes that stand for daemons: who started the sampler, and a step of the job."""
    found = [subprocess.Popen(["sleep", "600"]) for _ in range(2)]
    yield found
    for process in found:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def final(pid: int) -> str:
    """No sampler can have seen that much."""
    return f"done {pid} 7000000 1 2000002 3 4"


def ended(attached: Any) -> dict[str, Any]:
    assert attached.process.wait(30) == 0
    assert not attached.control.exists()
    record = attached.record
    assert isinstance(record, dict)
    return record


def test_who_is_watched_dies_without_a_word(sampler: Any, step: Any) -> None:
    attached = sampler.attach("--watch", str(step[0].pid))
    end(step[0])
    record = ended(attached)
    assert record["complete"] is False
    assert record["incomplete_reason"].startswith(GONE)


@pytest.mark.parametrize("word", ["leave", "end"])
def test_who_is_watched_says_that_he_goes(sampler: Any, step: Any, word: str) -> None:
    attached = sampler.attach("--watch", str(step[0].pid))
    attached.send(word)
    record = ended(attached)
    assert (record["complete"], record["incomplete_reason"]) == (True, None)


def test_a_step_that_still_runs_is_measured_to_its_end(sampler: Any, step: Any) -> None:
    attached = sampler.attach("--watch", str(step[0].pid), "--rate", "20")
    attached.send(f"root {step[1].pid}")
    end(step[0])
    seen = attached.totals()["elapsed_s"]
    assert attached.totals()["elapsed_s"] > seen  # it answers still
    attached.send(final(step[1].pid), "leave")
    assert attached.totals()["cpu_s"] == 7  # a step may ask until it is gone
    end(step[1])
    record = ended(attached)
    assert record["incomplete_of"] == "processes"  # counted by nobody, to its end all the same
    assert (record["cpu"]["cpu_s"], record["io"]["wchar_bytes"]) == (7, 2000002)


def test_he_goes_while_a_step_runs(sampler: Any, step: Any) -> None:
    """As Slurm ends an extern step when another node of the job is lost (--no-kill)."""
    attached = sampler.attach("--watch", str(step[0].pid), "--rate", "20")
    attached.send(f"root {step[1].pid}", "leave")
    end(step[0])
    assert attached.totals()["elapsed_s"] >= 0
    attached.send(final(step[1].pid))
    assert attached.totals()["cpu_s"] == 7  # a step may ask until it is gone
    end(step[1])
    record = ended(attached)
    assert record["incomplete_of"] == "processes"  # counted by nobody, to its end all the same
    assert record["cpu"]["cpu_s"] == 7


def test_the_last_step_dies_without_a_word_too(sampler: Any, step: Any) -> None:
    attached = sampler.attach("--watch", str(step[0].pid), "--rate", "20")
    attached.send(f"root {step[1].pid}")
    end(step[0])
    assert attached.totals()["elapsed_s"] >= 0
    end(step[1])
    record = ended(attached)
    assert record["complete"] is False
    assert record["incomplete_reason"].startswith(GONE)


def test_the_socket_of_another_start_is_left_alone(sampler: Any) -> None:
    attached = sampler.attach()
    attached.control.rename(attached.control.with_suffix(".old"))
    attached.control.write_text("another's")
    attached.process.terminate()
    assert attached.process.wait(30) == 0
    assert attached.control.read_text() == "another's"
