"""[study] scaling: which factors are scales; checked strictly, and kept in the plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steelyard.analysis.sources.study_files import Scaling, read_scaling
from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.study import plan, study

NPB = '[[benchmark]]\nuse = "npb"\nkernel = "ep"\n'
RANKS = "[factors]\nranks = [1, 2, 4]\n"


def parsed(text: str) -> study.Study:
    return study.parse_study(text.encode(), Path("s.toml"))


def test_a_scale_is_over_the_named_factors_and_the_plan_has_it() -> None:
    of = parsed('[study]\nscaling = { kind = "strong", over = ["ranks"] }\n' + RANKS + NPB)
    assert of.scaling == Scaling("strong", ("ranks",))
    document = json.loads(plan.plan_json(of, plan.make_plan(of)))
    assert document["study"]["scaling"] == {"kind": "strong", "over": ["ranks"]}
    assert read_scaling(document["study"]["scaling"]) == of.scaling


def test_one_factor_needs_no_list() -> None:
    of = parsed('[study]\nscaling = { kind = "weak", over = "ranks" }\n' + RANKS + NPB)
    assert of.scaling == Scaling("weak", ("ranks",))


def test_a_study_without_it_has_none() -> None:
    of = parsed(RANKS + NPB)
    assert of.scaling is None
    assert json.loads(plan.plan_json(of, []))["study"]["scaling"] is None


@pytest.mark.parametrize(
    "document", [None, {}, {"kind": "sideways", "over": ["ranks"]}, {"kind": "weak"}, "weak"]
)
def test_what_no_plan_of_ours_has_is_no_scaling(document: object) -> None:
    assert read_scaling(document) is None


ALLOWED = 'allowed is "strong", "weak", or { kind = "strong", over = ["threads"] }'
BAD = {
    "another kind": ('scaling = "storng"\n', f'study.scaling = "storng": {ALLOWED}'),
    "a number": ("scaling = 2\n", f"study.scaling = 2: {ALLOWED}"),
    "no kind": (
        'scaling = { over = ["ranks"] }\n',
        f'study.scaling = {{ over = ["ranks"] }}: {ALLOWED}',
    ),
    "a key too many": (
        'scaling = { kind = "strong", ovr = ["ranks"] }\n',
        "study.scaling.ovr: unknown key; known: kind, over; did you mean 'over'?",
    ),
    "no scale named": (
        'scaling = "strong"\n',
        (
            "study.scaling: [factors] has none of nodes, tasks_per_node, cpus_per_task: name the "
            'factors whose product is the scale, such as { kind = "strong", over = ["threads"] }'
        ),
    ),
    "no factor": (
        'scaling = { kind = "strong", over = ["rank"] }\n',
        "study.scaling: rank is no factor; did you mean 'ranks'?",
    ),
    "an empty list": (
        'scaling = { kind = "strong", over = [] }\n',
        'study.scaling.over = []: allowed is a factor or a list of them, such as ["threads"]',
    ),
    "a factor twice": (
        'scaling = { kind = "strong", over = ["ranks", "ranks"] }\n',
        'study.scaling.over = ["ranks", "ranks"]: allowed is each factor once',
    ),
    "levels that are no numbers": (
        'scaling = { kind = "strong", over = ["class"] }\n',
        (
            'study.scaling: the factor class has the level "S": expected whole numbers from 1, of '
            "which a scale is made"
        ),
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_is_one_line(case: str) -> None:
    line, message = BAD[case]
    with pytest.raises(UsageError) as caught:
        parsed("[study]\n" + line + RANKS + 'class = ["S", "W"]\n' + NPB)
    assert str(caught.value) == f"s.toml: {message}"


def test_one_level_is_no_scaling() -> None:
    text = '[study]\nscaling = { kind = "strong", over = "ranks" }\n[factors]\nranks = [2]\n' + NPB
    with pytest.raises(UsageError, match="ranks: one level only; expected two scales at least"):
        parsed(text)
