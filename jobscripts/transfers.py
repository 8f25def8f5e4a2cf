"""[bulk] of a benchmark.toml: which of its runs measure the throughput of a way, and by what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from steelyard.jobscripts.description import Description
from steelyard.jobscripts.requirements import Conditions, conditions_hold, read_conditions

BYTES = {"bytes_per_s": 1.0, "bit/s": 1 / 8}  # in one of the metric's unit
KINDS = ("file", "timed")  # files first: they go the way of the data
SECONDS, OMIT = "seconds", "omit"


@dataclass(frozen=True)
class Bulk:
    """Transfers whose throughput, in bytes per second, is `metric` × `factor`.

    `kind`: "file", a transfer lasts until a file is over; "timed", for the parameter `seconds`,
    the first `omit` of them, where there is such a parameter, not counted. `when`: only runs with
    these parameters are such transfers.
    """

    metric: str
    kind: str
    factor: float
    when: Conditions

    def is_measured(self, parameters: Mapping[str, object]) -> bool:
        """Whether runs with these parameters, defaults filled in, are such transfers."""
        return conditions_hold(self.when, parameters)

    def times_s(self, parameters: Mapping[str, object]) -> tuple[float, float]:
        """(how long a transfer of kind "timed" lasts, how much of its begin does not count)."""
        return float(str(parameters[SECONDS])), float(str(parameters.get(OMIT, 0)))


def read_bulk(doc: Description, parameters: list[str], units: Mapping[str, str]) -> Bulk | None:
    """None without [bulk]; `units` are those of the results."""
    if "bulk" not in doc.data:
        return None
    part = doc.table("bulk")
    part.only(("metric", "kind", "when"))
    metric, kind = part.choice("metric", tuple(units)), part.choice("kind", KINDS)
    if units[metric] not in BYTES:
        part.wrong("metric", metric, f"a result in {' or '.join(BYTES)}")
    if kind == "timed" and SECONDS not in parameters:
        part.wrong("kind", kind, f'"timed" only with a parameter {SECONDS}')
    return Bulk(metric, kind, BYTES[units[metric]], read_conditions(part, "when", parameters))
