"""Shares of a whole: packets lost of packets sent."""

from __future__ import annotations

import math
from dataclasses import dataclass

from steelyard.analysis.stats.basics import CONFIDENCE


@dataclass(frozen=True, slots=True)
class Share:
    """A share of n trials with its interval, fractions of 1."""

    value: float
    low: float
    high: float
    n: int


def wilson(hits: float, n: int, confidence: float = CONFIDENCE) -> Share:
    """A binomial share with Wilson's score interval, which holds near 0 too.

    Wilson (1927), "Probable Inference, the Law of Succession, and Statistical Inference", JASA
    22(158). `hits` may be a product of a share and its n. ValueError unless 0 <= hits <= n, n > 0.
    """
    if not 0 <= hits <= n or n < 1:
        raise ValueError(f"expected 0 <= hits <= n and n > 0, found {hits} of {n}")
    from scipy.special import ndtri

    z = float(ndtri((1 + confidence) / 2))
    share, factor = hits / n, 1 + z * z / n
    middle = (share + z * z / (2 * n)) / factor
    half = z / factor * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Share(share, max(middle - half, 0.0), min(middle + half, 1.0), n)


def unseen_share(n: int, confidence: float = CONFIDENCE) -> float:
    """The largest share of runs that may be hit by something though none of n was.

    Clopper & Pearson (1934), "The Use of Confidence or Fiducial Limits Illustrated in the Case of
    the Binomial", Biometrika 26(4), for 0 of n: about 3 / n. No interval of a mean of n knows of it.
    """
    return 1 - math.exp(math.log1p(-confidence) / n)
