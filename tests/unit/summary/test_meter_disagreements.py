"""Two meters of one part of a node: how far apart they may be."""

from __future__ import annotations

from typing import Any

import pytest

from steelyard.analysis.summary.meter_disagreements import find_disagreements


def zone(meter: str, energy_j: float | None, **more: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {
        "covers": "package", "unit": 0, "measures": "energy", "elapsed_s": 100.0,
        "resolution_j": 0.0, "period_s": None, "path": "/sys",
    }  # fmt: skip
    return usual | {"meter": meter, "energy_j": energy_j} | more


def told(*zones: dict[str, Any]) -> list[tuple[str, str]]:
    return [found.meters for found in find_disagreements("x-1", "n1", list(zones))]


# 100 W for 100 s: 2 % is 200 J, 0.2 s are 20 J.
@pytest.mark.parametrize(("joules", "seen"), [(9781.0, False), (9779.0, True), (10_000.0, False)])
def test_counters_may_be_2_percent_and_two_steps_of_time_apart(joules: float, seen: bool) -> None:
    pair = [("perf", "powercap")] if seen else []
    assert told(zone("powercap", 10_000.0), zone("perf", joules)) == pair
    assert told(zone("perf", joules), zone("powercap", 10_000.0)) == pair


@pytest.mark.parametrize(("joules", "seen"), [(8481.0, False), (8479.0, True)])
def test_watts_that_are_integrated_may_be_10_percent_and_their_period_apart(
    joules: float, seen: bool
) -> None:
    watts = zone("hwmon", joules, measures="power", period_s=5.0)
    assert told(zone("powercap", 10_000.0), watts) == ([("hwmon", "powercap")] if seen else [])


@pytest.mark.parametrize(("joules", "seen"), [(9778.0, False), (9776.0, True)])
def test_what_a_meter_cannot_resolve_is_allowed(joules: float, seen: bool) -> None:
    whole = zone("cray", joules, resolution_j=3.0)
    assert told(zone("powercap", 10_000.0), whole) == ([("cray", "powercap")] if seen else [])


def test_all_packages_are_held_against_what_tells_them_together() -> None:
    packages = [zone("powercap", 5000.0), zone("powercap", 5000.0, unit=1)]
    assert told(*packages, zone("cray", 10_000.0, unit=None)) == []
    assert told(*packages, zone("cray", 5000.0, unit=None)) == [("cray", "powercap")]
    assert told(*packages, zone("perf", 5000.0)) == []  # of one of the two: not the same thing


def test_times_of_unlike_length_are_compared_by_their_power() -> None:
    late = zone("nvml", 9000.0, elapsed_s=90.0, covers="accelerator")
    assert told(late, zone("cray", 10_000.0, covers="accelerator")) == []


def test_a_second_view_is_held_against_the_first() -> None:
    views = [
        zone("powercap", 10_000.0, path="/sys/class/powercap/intel-rapl:0"),
        zone("powercap", 5000.0, path="/sys/class/powercap/intel-rapl-mmio:0"),
    ]
    assert told(*views) == [("powercap", "powercap (MMIO)")]


def test_files_of_one_part_are_held_against_each_other_and_never_summed() -> None:
    def file(name: str, energy_j: float) -> dict[str, Any]:
        more = {"covers": "node", "unit": None, "measures": "power", "name": name}
        return zone("file", energy_j, **more)

    bmc = zone("dcmi", 10_000.0, covers="node", unit=None, measures="power")
    assert told(bmc, file("file-a", 10_000.0), file("file-b", 10_000.0)) == []
    assert told(file("file-a", 10_000.0), file("file-b", 15_000.0)) == [("file-a", "file-b")]


def test_what_has_no_value_is_compared_with_nothing() -> None:
    assert told(zone("powercap", 10_000.0), zone("perf", None)) == []
    assert told(zone("powercap", 1.0), zone("perf", 1.0, covers="dram")) == []
