"""[study] scaling: which factors scale the study, and whether the problem grows with them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from steelyard.analysis.sources.study_files import SCALING_KINDS, Scaling
from steelyard.jobscripts.toml_table import shown
from steelyard.wrappers.base.errors import did_you_mean
from steelyard.wrappers.study.factors import Level
from steelyard.wrappers.study.job_settings import ALLOCATION
from steelyard.wrappers.study.table_reader import Table

Factors = Mapping[str, tuple[Level, ...]]
ALLOWED = '"strong", "weak", or { kind = "strong", over = ["threads"] }'


def read_scaling(head: Table, factors: Factors) -> Scaling | None:
    """Check `scaling` of [study]; return None when absent.

    A condition's scale is the product of its levels of the factors `over`: by default those of
    nodes, tasks_per_node and cpus_per_task that the study has."""
    value = head.data.get("scaling")
    if value is None:
        return None
    if not isinstance(value, str | dict):
        head.wrong("scaling", value, ALLOWED)
    table = Table(head.file, {"kind": value}, head.prefix + "scaling.")
    if isinstance(value, dict):
        table = head.table("scaling")
    table.only(("kind", "over"))
    kind = table.data.get("kind")
    if kind not in SCALING_KINDS:
        head.wrong("scaling", value, ALLOWED)
    over = default_factors(head, factors) if "over" not in table.data else read_factor_names(table)
    check_levels(head, over, factors)
    return Scaling(str(kind), over)


def default_factors(head: Table, factors: Factors) -> tuple[str, ...]:
    """Return the study's factors that change a job's allocation."""
    found = tuple(name for name in ALLOCATION if name in factors)
    if not found:
        head.fail(
            "scaling",
            f"[factors] has none of {', '.join(ALLOCATION)}: name the factors whose product is the "
            'scale, such as { kind = "strong", over = ["threads"] }',
        )
    return found


def read_factor_names(table: Table) -> tuple[str, ...]:
    """Return the factors that `over` names."""
    over = table.data["over"]
    names = [over] if isinstance(over, str) else over
    if not isinstance(names, list) or not names or not all(isinstance(one, str) for one in names):
        table.wrong("over", over, 'a factor or a list of them, such as ["threads"]')
    if len(set(names)) < len(names):
        table.wrong("over", over, "each factor once")
    return tuple(names)


def check_levels(head: Table, over: Sequence[str], factors: Factors) -> None:
    """Check that levels are whole numbers and that the study has several scales."""
    for name in over:
        if name not in factors:
            head.fail("scaling", f"{name} is no factor{did_you_mean(name, factors)}")
        for level in factors[name]:
            if type(level) is not int or level < 1:
                head.fail(
                    "scaling",
                    f"the factor {name} has the level {shown(level)}: expected whole numbers from "
                    "1, of which a scale is made",
                )
    if math.prod(len(factors[name]) for name in over) < 2:
        head.fail("scaling", f"{', '.join(over)}: one level only; expected two scales at least")
