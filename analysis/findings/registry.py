"""All kinds of findings, a file syNN_NAME.py each, and what they find in a study."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
from collections.abc import Sequence
from typing import cast

from steelyard.analysis import findings as room
from steelyard.analysis.findings.finding import Finding, Rule, Severity
from steelyard.analysis.summary.summary import Summary

FILE = re.compile(r"sy\d\d_[a-z_]+")


@functools.cache
def rules() -> tuple[Rule, ...]:
    """By code."""
    names = sorted(module.name for module in pkgutil.iter_modules(room.__path__))
    return tuple(
        cast(Rule, importlib.import_module(f"{room.__name__}.{name}"))
        for name in names
        if FILE.fullmatch(name)
    )


def find(summary: Summary) -> list[Finding]:
    """All findings, the gravest first, then by code."""
    return by_gravity([finding for rule in rules() for finding in rule.check(summary)])


def by_gravity(findings: Sequence[Finding]) -> list[Finding]:
    """The gravest first, then by code."""
    order = list(Severity)
    return sorted(findings, key=lambda f: (order.index(f.kind.severity), f.kind.code))
