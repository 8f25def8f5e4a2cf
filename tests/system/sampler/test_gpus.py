"""NVIDIA's GPUs through a library of NVML's interface that is built here: no machine has one."""

from __future__ import annotations

import time
from typing import Any

import pytest

from .gpu_lab import Gpus, gpus

__all__ = ["gpus"]  # a fixture
CALL_S = 80  # what a call takes that nobody may wait for


def zones(record: dict[str, Any]) -> list[dict[str, Any]]:
    return list(record["energy"]["zones"])


def test_joules_of_each_gpu_are_those_of_the_library(
    gpus: Gpus, sampler: Any, waiting: Any
) -> None:
    attached = sampler.attach("--root", gpus.tree, "--rate", "20")
    waiting("a first reading", lambda: attached.samples and attached.samples[-1]["energy_j:gpu-1"])
    for step in range(1, 11):
        gpus.set(0, str(7_000_000_000 + step * 12_345))
        gpus.set(1, str(9_000_000_000 + step * 678))
        time.sleep(0.05)
    waiting("all joules", lambda: attached.column("energy_j:gpu-0")[-1:] == [123.45])
    record = attached.end()
    assert [zone["energy_j"] for zone in zones(record)] == [123.45, 6.78]
    assert attached.column("energy_j:gpu-0")[-1] == 123.45
    assert {(z["meter"], z["covers"], z["resolution_j"]) for z in zones(record)} == {
        ("nvml", "accelerator", 0.001)
    }
    assert [zone["identity"][-1] for zone in zones(record)] == ["0", "1"]
    assert zones(record)[0]["identity"] == "GPU-5d3e7a10-0000-4000-8000-000000000000"
    # The node's energy is packages and dram: a GPU is told apart.
    assert record["energy"]["energy_j"] is None
    assert record["complete"] is True


def test_a_library_that_takes_its_time_delays_no_sample_and_no_end(
    gpus: Gpus, sampler: Any, waiting: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NVML_STAND_IN_MS", "1500")
    attached = sampler.attach("--root", gpus.tree, "--rate", "20")
    waiting("a second reading", lambda: attached.column("energy_j:gpu-1")[-1:] == [0.0])
    gpus.set(1, "9000002000")
    waiting("its joules", lambda: attached.column("energy_j:gpu-1")[-1:] == [2.0])
    (gpus.folder / "ms").write_text(f"{CALL_S * 1000}")
    seen = len(attached.samples)
    waiting("samples of two seconds", lambda: len(attached.samples) > seen + 40, CALL_S / 2)
    begin = time.monotonic()
    record = attached.end()
    assert time.monotonic() - begin < CALL_S / 2
    assert zones(record)[1]["energy_j"] == 2.0
    assert zones(record)[1]["elapsed_s"] <= record["elapsed_s"] - 1.5  # it began late, and says so


@pytest.mark.parametrize(
    ("text", "why"),
    [("error 3", "NVML: Not Supported"), ("nonsense", "NVML: Unknown Error")],
)
def test_what_nvml_refuses_is_null_with_its_words(
    gpus: Gpus, sampler: Any, waiting: Any, text: str, why: str
) -> None:
    gpus.set(1, text)
    attached = sampler.attach("--root", gpus.tree, "--rate", "20")
    waiting("a first reading", lambda: attached.samples and attached.samples[-1]["energy_j:gpu-0"])
    gpus.set(0, "7000001000")
    waiting("its joules", lambda: attached.column("energy_j:gpu-0")[-1:] == [1.0])
    record = attached.end()
    assert [zone["energy_j"] for zone in zones(record)] == [1.0, None]
    assert record["missing"]["energy.zones.1.energy_j"] == why


def test_watts_of_a_gpu_that_counts_no_joules_are_integrated_and_marked(
    gpus: Gpus, sampler: Any, waiting: Any
) -> None:
    gpus.set(1, "watts 250000")
    attached = sampler.attach("--root", gpus.tree, "--rate", "20")
    waiting("watts of two seconds", lambda: (attached.column("energy_j:gpu-1") or [0])[-1])
    record = attached.end()
    counting, integrated = zones(record)
    assert counting["measures"] == "energy"
    assert counting["energy_j"] == 0.0
    assert integrated["measures"] == "power"
    assert "resolution_j" not in integrated
    assert integrated["energy_j"] == pytest.approx(250.0 * integrated["elapsed_s"], abs=1e-3)
    assert 0.5 < integrated["elapsed_s"] < record["elapsed_s"] + 0.3


def test_watts_do_not_stand_in_for_a_counter_that_fails_later(
    gpus: Gpus, sampler: Any, waiting: Any
) -> None:
    attached = sampler.attach("--root", gpus.tree, "--rate", "20")
    waiting("a first reading", lambda: attached.column("energy_j:gpu-1")[-1:] == [0.0])
    gpus.set(1, "watts 250000")
    waiting("an empty cell", lambda: attached.column("energy_j:gpu-1")[-1:] == [None])
    record = attached.end()
    assert zones(record)[1]["measures"] == "energy"
    assert zones(record)[1]["energy_j"] is None
    assert record["missing"]["energy.zones.1.energy_j"] == "NVML: Not Supported"


def test_a_counter_that_began_anew_is_null(gpus: Gpus, sampler: Any, waiting: Any) -> None:
    attached = sampler.attach("--root", gpus.tree, "--rate", "20")
    waiting("a first reading", lambda: attached.samples and attached.samples[-1]["energy_j:gpu-0"])
    gpus.set(0, "1000")
    waiting("an empty cell", lambda: attached.column("energy_j:gpu-0")[-1:] == [None])
    record = attached.end()
    assert zones(record)[0]["energy_j"] is None
    assert "went down" in record["missing"]["energy.zones.0.energy_j"]


def test_without_the_library_it_says_so(
    gpus: Gpus, sampler: Any, waiting: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/nowhere")
    attached = sampler.attach("--root", gpus.tree, "--rate", "20")
    time.sleep(0.5)
    record = attached.end()
    assert zones(record)[0]["energy_j"] is None
    assert "libnvidia-ml.so.1" in record["missing"]["energy.zones.0.energy_j"]
