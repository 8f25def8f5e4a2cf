"""Two levels of a series with AR(1) noise, by generalized least squares.

A session is compared with φ times the one before it: y(i) − φ y(i − 1). These innovations are
independent, so their variance has the full degrees of freedom whatever φ is. The larger φ is, the
more the first session after a step counts. Prais & Winsten (1954), "Trend Estimators and Serial
Correlation", Cowles Commission Discussion Paper 383; for a step at any place: Robbins, Gallagher,
Lund & Aue (2011), "Mean Shift Testing in Correlated Data", Journal of Time Series Analysis 32(5).

Few sessions cannot determine φ: 8 independent sessions may show 0.9 by chance. The variance of a
session, inflated by φ, would then have one degree of freedom, and no step would be significant.

All functions take arrays: one number for each pair of a night and a length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of whitened sessions on their level; `score` / `information` is its estimate."""

    information: Floats  # 1 / variance of the level, in units of the variance of an innovation
    score: Floats
    squares: Floats  # of the innovations, around 0

    def __add__(self, other: Evidence) -> Evidence:
        return Evidence(
            self.information + other.information,
            self.score + other.score,
            self.squares + other.squares,
        )

    @classmethod
    def of_sums(cls, weight: Floats, total: Floats, squares: Floats, phi: Floats) -> Evidence:
        """Make it from sums over sessions: weights, innovations and their squares, both
        weighted.
        """
        return cls((1 - phi) ** 2 * weight, (1 - phi) * total, squares)

    @classmethod
    def of_one(cls, weight: Floats, innovation: Floats, phi: Floats) -> Evidence:
        """Make it from one session after another of the same level."""
        return cls.of_sums(weight, weight * innovation, weight * innovation**2, phi)

    @classmethod
    def of_first(cls, weight: Floats, value: Floats, phi: Floats) -> Evidence:
        """Make it from a session without a predecessor, which has the variance of the series."""
        information = weight * (1 - phi**2)
        return cls(information, information * value, information * value**2)


@dataclass(frozen=True, slots=True)
class TwoLevels:
    """The step between two levels, and the residuals."""

    step: Floats
    share_before: Floats  # weight of the variance of an innovation before it
    share_after: Floats
    rest: Floats  # sum of squares of the innovations


def fit_two_levels(
    before: Evidence, first: tuple[Floats, Floats], after: Evidence, phi: Floats
) -> TwoLevels:
    """Fit two levels by least squares.

    `first` is the weight and the innovation of the first session after the step. Its predecessor
    has the other level, so it shows its own level − φ times the other.
    """
    import numpy as np

    weight, innovation = first
    # The normal equations: [[p, -q], [-q, r]] · levels = scores.
    p, q, r = before.information + phi**2 * weight, phi * weight, weight + after.information
    score_before = before.score - q * innovation
    score_after = after.score + weight * innovation
    determinant = p * r - q * q
    level_before = (r * score_before + q * score_after) / determinant
    level_after = (q * score_before + p * score_after) / determinant
    squares = before.squares + weight * innovation**2 + after.squares
    rest = squares - level_before * score_before - level_after * score_after
    of_before, of_after = (q - r) / determinant, (p - q) / determinant
    return TwoLevels(
        level_after - level_before,
        of_before**2 * before.information,
        of_after**2 * after.information + weight * (of_after - phi * of_before) ** 2,
        np.maximum(rest, 0.0),
    )


def innovation_squares(
    squares: Floats | float, products: Floats | float, phi: Floats | float
) -> Floats | float:
    """Return the sum of squares of innovations from that of residuals and of products of neighbors.

    Both ends count as inner sessions, which is too large by at most the 2 φ² / n-th part.
    """
    return (1 + phi**2) * squares - 2 * phi * products
