"""Numbers and reasons of jobs, as people read them."""

from __future__ import annotations


def joules(value: float | None) -> str:
    """`1.5 kJ`; `–` for None."""
    if value is None:
        return "–"
    for unit in ("J", "kJ", "MJ"):
        if abs(value) < 1000:
            return f"{value:.4g} {unit}"
        value /= 1000
    return f"{value:.4g} GJ"


def percent(share: float | None) -> str:
    """`35.7 %`; `–` for None."""
    if share is None:
        return "–"
    return "< 0.1 %" if 0 < share < 0.001 else f"{100 * share:.1f} %"


def by_reason(missing: dict[str, str]) -> dict[str, list[str]]:
    """What each reason is given for."""
    found: dict[str, list[str]] = {}
    for name, why in missing.items():
        found.setdefault(str(why), []).append(name)
    return found
