"""Proportions, such as packets lost of packets sent."""

from __future__ import annotations

import math
from dataclasses import dataclass

from steelyard.analysis.stats.basics import CONFIDENCE


@dataclass(frozen=True, slots=True)
class Share:
    """A proportion of n trials with its interval, as fractions of 1."""

    value: float
    low: float
    high: float
    n: int


def wilson(hits: float, n: int, confidence: float = CONFIDENCE) -> Share:
    """Return a binomial proportion with Wilson's score interval, which also holds near 0.

    Wilson (1927), "Probable Inference, the Law of Succession, and Statistical Inference", JASA
    22(158). `hits` may be the product of a share and its n. Raises ValueError unless 0 <= hits <= n
    and n > 0.
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
    """Return the largest share of runs that an event may affect although it affected none of n.

    Clopper & Pearson (1934), "The Use of Confidence or Fiducial Limits Illustrated in the Case of
    the Binomial", Biometrika 26(4), for 0 of n: about 3 / n. The interval of a mean of n runs does
    not include such an event.
    """
    return 1 - math.exp(math.log1p(-confidence) / n)
