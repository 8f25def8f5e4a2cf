"""Studies of bench/coverage.py on scaling: serial fractions, laws, and the best scale."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from coverage_draws import Chance, Draw, Study, held, normal, skewed

from steelyard.analysis.stats.basics import CONFIDENCE, Estimate
from steelyard.analysis.stats.hypothesis_tests import welch
from steelyard.analysis.stats.overhead import compute_overhead
from steelyard.analysis.stats.scaling import (
    LEAST_EFFICIENCY,
    Curve,
    Law,
    efficiency,
    find_best_levels,
    find_largest_efficient,
    fit_amdahl,
    fit_gustafson,
    fit_universal,
    one_sided_confidence,
    serial_fraction,
    speed_up,
)

SCALES = (1.0, 2.0, 4.0, 8.0, 16.0)
SERIAL, CROSSTALK = 0.05, 0.004
PEAK = ((1 - SERIAL) / CROSSTALK) ** 0.5


def law_times(crosstalk: float = 0.0, scales: tuple[float, ...] = SCALES) -> list[float]:
    """Return seconds by Amdahl's law, or by the USL."""
    return [100 * (1 + SERIAL * (q - 1) + crosstalk * q * (q - 1)) / q for q in scales]


def gustafson_times() -> list[float]:
    """Return seconds for the reference's work if the work grows with the scale."""
    return [100 / (q - SERIAL * (q - 1)) for q in SCALES]


def karp_flatt_study(draw: Draw, n: int, share: float) -> Study:
    """Study the interval of the serial fraction at 8 processors."""
    one, eight = law_times(scales=(1.0, 8.0))

    def study(chance: Chance, _: bool) -> tuple[bool | None, None]:
        sides = (draw(chance, n, mean, share).tolist() for mean in (one, eight))
        speed = speed_up(compute_overhead(*sides))
        found = serial_fraction(speed, 8.0) if speed else None
        return found and held(found.low, found.high, SERIAL), None

    return study


def drawn_curve(
    chance: Chance, times: list[float], draw: Draw, n: int, shares: list[float], block: float
) -> Curve:
    """Draw runs of each scale; with a share for blocks, each block varies all scales together."""
    luck = 1 + block * chance.standard_normal(n)
    runs = [
        (draw(chance, n, mean, share) * luck).tolist()
        for mean, share in zip(times, shares, strict=True)
    ]
    return Curve.of(SCALES, [[[v] for v in values] for values in runs], is_paired=block > 0)


def law_study(
    fit: Callable[[Curve], Law],
    times: list[float],
    truth: tuple[str, float],
    n: int = 5,
    draw: Draw = normal,
    shares: list[float] | None = None,
    block: float = 0.0,
) -> Study:
    """Study a parameter's interval if the law is not rejected; the peer is scipy's curve_fit."""
    name, value = truth

    def study(chance: Chance, with_peer: bool) -> tuple[bool | None, bool | None]:
        curve = drawn_curve(chance, times, draw, n, shares or [0.05] * len(times), block)
        found: Estimate | None = getattr(fit(curve), name)
        peer = scipy_held(curve) if with_peer and fit is fit_amdahl else None
        return found and held(found.low, found.high, value), peer

    return study


def scipy_held(curve: Curve) -> bool:
    """Fit Amdahl's law to all runs by scipy.optimize.curve_fit, ± 2 standard errors."""
    from scipy.optimize import curve_fit

    places = np.repeat(curve.scales, [len(row) for row in curve.errors])
    runs = np.concatenate(
        [m + len(e) * np.asarray(e) for m, e in zip(curve.means, curve.errors, strict=True)]
    )
    found, errors = curve_fit(
        lambda q, a, s: a * (1 + s * (q - 1)) / q, places, runs, p0=(runs.max(), 0.1)
    )
    half = 2 * float(errors[1, 1]) ** 0.5
    return abs(float(found[1]) - SERIAL) <= half


def misfit_study(
    fit: Callable[[Curve], Law],
    times: list[float],
    n: int = 5,
    draw: Draw = normal,
    shares: list[float] | None = None,
    block: float = 0.0,
) -> Study:
    """Study whether a law that holds is rejected."""

    def study(chance: Chance, _: bool) -> tuple[bool, None]:
        curve = drawn_curve(chance, times, draw, n, shares or [0.05] * len(times), block)
        return fit(curve).reason is not None, None

    return study


def efficient_study(n: int, share: float, efficiencies: tuple[float, ...]) -> Study:
    """Study the largest scale with an efficiency of at least 70 %, which is 8."""
    times = [100 / q / e for q, e in zip(SCALES, efficiencies, strict=True)]

    def study(chance: Chance, _: bool) -> tuple[bool | None, None]:
        sides = [normal(chance, n, mean, share).tolist() for mean in times]
        each = one_sided_confidence(CONFIDENCE, len(SCALES))
        found = [Estimate(1.0, 1.0, 1.0)]
        for q, side in zip(SCALES[1:], sides[1:], strict=True):
            speed = speed_up(compute_overhead(sides[0], side, each))
            assert speed is not None
            found.append(efficiency(speed, q))
        chosen = find_largest_efficient(SCALES, found, LEAST_EFFICIENCY)
        return chosen and chosen.low <= 8 <= chosen.high, None

    return study


def best_study(means: tuple[float, ...], n: int, draw: Draw = normal) -> Study:
    """Study whether the level with the least mean (the first) is among the reported ones."""

    def study(chance: Chance, _: bool) -> tuple[bool, None]:
        sides = [draw(chance, n, mean, 0.05).tolist() for mean in means]
        found = find_best_levels(
            [float(np.mean(side)) for side in sides], lambda i, j: welch(sides[i], sides[j])
        )
        return 0 in found, None

    return study


UNEQUAL = [0.02, 0.02, 0.05, 0.1, 0.15]
USL_TIMES = law_times(CROSSTALK)
SERIAL_TRUTH = ("serial", SERIAL)

INTERVALS: dict[str, Study] = {
    "serial fraction at 8, 5 + 5": karp_flatt_study(normal, 5, 0.05),
    "Amdahl, 5 scales x 5": law_study(fit_amdahl, law_times(), SERIAL_TRUTH),
    "Amdahl, spread 2 to 15 %, 5 x 10": law_study(
        fit_amdahl, law_times(), SERIAL_TRUTH, 10, shares=UNEQUAL
    ),
    "Amdahl by block, 5 x 10": law_study(fit_amdahl, law_times(), SERIAL_TRUTH, 10, block=0.1),
    "Gustafson, 5 scales x 5": law_study(fit_gustafson, gustafson_times(), SERIAL_TRUTH),
    "USL, serial, 5 scales x 5": law_study(fit_universal, USL_TIMES, SERIAL_TRUTH),
    "USL, crosstalk, 5 scales x 5": law_study(fit_universal, USL_TIMES, ("crosstalk", CROSSTALK)),
    "USL, peak, 5 scales x 10": law_study(fit_universal, USL_TIMES, ("peak", PEAK), 10),
}
CAUTIOUS: dict[str, Study] = {
    "Amdahl, skewed 30 %, 5 x 10": law_study(
        fit_amdahl, law_times(), SERIAL_TRUTH, 10, skewed, [0.3] * 5
    ),
    "largest efficient scale, 5 x 5": efficient_study(5, 0.05, (1, 0.95, 0.87, 0.74, 0.57)),
    "largest efficient at its limit, 5 x 5": efficient_study(5, 0.05, (1, 0.9, 0.8, 0.7, 0.699)),
    "best of 5 levels, equal, 5 x 5": best_study((10.0,) * 5, 5),
    "best of 5 levels, steps of 3 %, 5 x 10": best_study((10.0, 10.3, 10.6, 11.0, 11.3), 10),
}
ALARMS: dict[str, Study] = {
    "Amdahl refused, 5 x 5": misfit_study(fit_amdahl, law_times()),
    "Amdahl refused, spread 2 to 15 %, 5 x 10": misfit_study(
        fit_amdahl, law_times(), 10, shares=UNEQUAL
    ),
    "Amdahl refused, by block, 5 x 10": misfit_study(fit_amdahl, law_times(), 10, block=0.1),
    "USL refused, 5 x 5": misfit_study(fit_universal, USL_TIMES),
    "Gustafson refused, 5 x 5": misfit_study(fit_gustafson, gustafson_times()),
}
