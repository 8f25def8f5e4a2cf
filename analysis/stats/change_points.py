"""Change points of a figure over sessions: when did its level change, and by how much?

A session is what one night measured: one value per run. Means of sessions are compared
(session_means.py), so the spread between sessions is in every interval, and runs of one night never
count as independent. `find_changes` replays the nights. At each night the statistic of
change_point_test.py compares the last sessions with those since the latest change, so that a
reported change is not withdrawn the next night. Sizes and intervals come from the segments as they
are known today.

A slow drift differs from a step: if a line fits a segment better than two levels do, its slope is
subtracted and the replay continues. Beaulieu & Killick (2018), "Distinguishing Trends and Shifts
from Memory in Climate Data", Journal of Climate 31(23).

Not detected: steps of fewer than 3 sessions, seasons, and noise that wanders like a random walk.
apache-otava and ruptures were measured and not adopted: docs/dependencies.md, bench/history.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from steelyard.analysis.stats.basics import CONFIDENCE, Interval, fieller, student_quantile
from steelyard.analysis.stats.change_point_test import (
    MIN_AFTER,
    MIN_BEFORE,
    MOST_CORRELATED,
    Noise,
    Sums,
    correlation,
    false_alarm_rate,
    inflation,
    innovation_squares,
    normal_equivalent,
    normal_tail,
    threshold,
    window_lengths,
)
from steelyard.analysis.stats.session_means import (
    Cleaned,
    Sessions,
    cut_outliers,
    summarize_sessions,
)
from steelyard.jobscripts.plurals import counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MIN_SESSIONS = MIN_BEFORE + MIN_AFTER
MIN_LEVEL = 3
SLOW = 30  # sessions; no line is fitted through fewer
DIFFERENT = 3.0  # z above which a segment's slope differs from the common slope
SOON, POWER_90 = 5, 1.2816  # sessions in which a detectable shift is found, and its normal quantile
# The data choose the place of a step. By simulation, intervals of 97.5 % then cover its size in 95
# %.
CHOSEN_CONFIDENCE = 0.975
CHUNK = 64  # nights tested together, for speed only


@dataclass(frozen=True, slots=True)
class Change:
    """A step in the level of a figure.

    `ratio` and its ends are None if the mean before may be 0, and if the figure wanders from
    session to session, so that no interval holds.
    """

    index: int  # the first session after the change
    ratio: float | None  # mean after / mean before, of the two neighboring segments
    low: float | None  # 95 % interval of the ratio
    high: float | None
    p: float  # of such a step in as many nightly tests of as many series without a step
    before: float  # means of the segments, outliers cut; of a drifting segment the line's end
    after: float


@dataclass(frozen=True, slots=True)
class Drift:
    """A slow change from session `begin` on.

    `ratio` is the line's end divided by its beginning, with a 95 % interval; it and its ends are
    None if the beginning may be 0.
    """

    begin: int
    ratio: float | None
    low: float | None
    high: float | None
    p: float  # as for a change


@dataclass(frozen=True, slots=True)
class Course:
    """The changes and the level of a series of sessions; `reason` states why a value is missing."""

    changes: tuple[Change, ...]
    level: Interval | None  # of the last segment (of a drift, its end); n counts sessions
    segment_begin: int
    detectable: float | None  # share of the level: found with 90 % probability within 5 sessions
    reason: str | None
    drift: Drift | None  # of the last segment
    outliers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Alarm:
    """A step at `place` that was reported at `night`; both count sessions with values."""

    change_index: int
    night: int
    z: float


def find_changes(sessions: Sequence[Sequence[float]], *, series: int = 1) -> Course:
    """Find the changes of level, the current level, and the least shift that could be found.

    `sessions[i]` has the values of the runs of session i, and is empty for a lost night. `series`
    is the number of series that are tested together. Raises ValueError for nan and infinity, and
    for `series` below 1.
    """
    if series < 1:
        raise ValueError(
            f"series = {series}; expected how many series are looked at together, 1 or more"
        )
    found = summarize_sessions(sessions)
    if found is None:
        return Course((), None, 0, None, f"0 sessions; expected at least {MIN_LEVEL}", None, ())
    cleaned = cut_outliers(found)
    limit = threshold(series)
    alarms, level = replay_nights(found, cleaned, limit)
    places = refine_places(found, level, [alarm.change_index for alarm in alarms])
    looks = series * len(found.x)
    return describe_course(found, cleaned, Steps(places, alarms, looks, limit))


def replay_nights(found: Sessions, cleaned: Cleaned, limit: float) -> tuple[list[Alarm], Cleaned]:
    """Return the steps in the order of their reports, and the sessions without drifts."""
    import numpy as np

    n, begin, noise = len(found.x), 0, Noise()
    alarms: list[Alarm] = []
    sums = Sums.of(found, cleaned)
    night = MIN_SESSIONS - 1
    while night < n:
        nights = np.arange(night, min(night + CHUNK, n))
        z = sums.statistics(begin, nights, window_lengths(n), noise)
        hit = np.flatnonzero((z > limit).any(axis=1))
        if not hit.size:
            night = int(nights[-1]) + 1
            continue
        night = int(nights[hit[0]])
        slope = drift_slope(found, cleaned, begin, night)
        if slope is not None:
            cleaned = cleaned.without_slope(begin, slope)
            sums = Sums.of(found, cleaned)
        else:
            lengths = np.arange(MIN_AFTER, night + 1 - begin)
            every = sums.statistics(begin, nights[hit[:1]], lengths, noise)[0]
            change_index = night + 1 - int(lengths[every.argmax()])
            alarms.append(Alarm(change_index, night, float(every.max())))
            noise = noise.joined(*sums.residuals(begin, change_index))
            begin = change_index
        night += 1
    return alarms, cleaned


def drift_slope(found: Sessions, cleaned: Cleaned, begin: int, night: int) -> float | None:
    """Return the slope per session of a line that fits begin … night better than any step."""
    import numpy as np

    n = night + 1 - begin
    if n < SLOW:
        return None
    w = found.weight[begin : night + 1]
    y = np.append(cleaned.y[begin : night - 1], (cleaned.second[night], cleaned.newest[night]))
    return fit_line(w, y)[0] if is_line_better(w, y) else None


def is_line_better(w: Floats, y: Floats) -> bool:
    """Return whether a line fits better than any step, whose place is one more parameter.

    Criterion of Zhang & Siegmund (2007), "A Modified Bayes Information Criterion with Applications
    to the Analysis of Comparative Genomic Hybridization Data", Biometrics 63(1).
    """
    import numpy as np

    n = len(y)
    slope, squares, rest = fit_line(w, y)
    positions = np.arange(MIN_AFTER, n - MIN_AFTER + 1)
    cost = 2 * math.log(n) + np.log(positions / n) + np.log(1 - positions / n)
    step = compute_step_squares(w, y)[MIN_AFTER - 1 : n - MIN_AFTER] - cost * rest / (n - 2)
    return slope**2 * squares >= float(step.max())


def compute_step_squares(w: Floats, y: Floats) -> Floats:
    """Return the sum of squares that a step removes, for a step after each session but the last."""
    import numpy as np

    weight, total = np.cumsum(w), np.cumsum(w * y)
    total_weight, mean = weight[-1], total[-1] / weight[-1]
    rest = weight[:-1] * (total_weight - weight[:-1]) / total_weight
    result: Floats = (total - mean * weight)[:-1] ** 2 / rest
    return result


def fit_line(w: Floats, y: Floats) -> tuple[float, float, float]:
    """Return (slope per session, sum of squares of places, sum of squares around the line)."""
    import numpy as np

    centered = np.arange(len(y)) - float(np.average(np.arange(len(y)), weights=w))
    squares = float((w * centered**2).sum())
    slope = float((w * centered * y).sum()) / squares
    rest = y - np.average(y, weights=w) - slope * centered
    return slope, squares, float((w * rest**2).sum())


def refine_places(found: Sessions, level: Cleaned, places: list[int]) -> list[int]:
    """Move each step to where its two segments' sum of squares is least, with today's data."""
    refined = list(places)
    for number, position in enumerate(places):
        begin = refined[number - 1] if number else 0
        end = places[number + 1] if number + 1 < len(places) else len(found.x)
        between = compute_step_squares(found.weight[begin:end], level.y[begin:end])
        low = min(MIN_AFTER, position - begin) - 1
        high = len(between) - min(MIN_AFTER, end - position) + 1
        refined[number] = begin + low + int(between[low:high].argmax()) + 1
    return refined


@dataclass(frozen=True, slots=True)
class Steps:
    """The places of the steps, their alarms, the number of tests, and the limit of z."""

    places: list[int]
    alarms: list[Alarm]
    looks: int
    limit: float


@dataclass(frozen=True, slots=True)
class Segment:
    """Sessions between two steps: the levels at both ends, which are equal without a drift."""

    n: int
    first: float
    last: float
    variance: float  # of either level
    covariance: float  # of the two levels
    degrees: float
    drift_z: float | None  # of the line; None without a line


@dataclass(frozen=True, slots=True)
class Fit:
    """The mean or line of a segment, and its residuals."""

    n: int
    weight: float
    mean: float
    slope: float
    squares: float
    products: float
    position_squares: float


def fit_segment(w: Floats, y: Floats, slope: float, position_squares: float) -> Fit:
    """Fit the mean, and the residuals of a line with this slope.

    Without a line `slope` and `position_squares` are 0.
    """
    import numpy as np

    mean, n = float(np.average(y, weights=w)), len(y)
    centered = np.arange(n) - float(np.average(np.arange(n), weights=w))
    rest = y - mean - slope * centered
    squares, products = float((w * rest**2).sum()), float((rest[1:] * rest[:-1]).sum())
    return Fit(n, float(w.sum()), mean, slope, squares, products, position_squares)


def fit_segments(
    found: Sessions, cleaned: Cleaned, places: Sequence[int], limit: float
) -> list[Fit]:
    """Fit each segment by its mean, or by a line where segments drift.

    If a segment drifts (its slope has a z above `limit`), its own slope is used. The other segments
    then use the slope common to all, except those whose slope differs from it: they are fitted by
    their mean.
    """
    parts = [
        (found.weight[begin:end], cleaned.y[begin:end])
        for begin, end in pairwise([0, *places, len(found.x)])
    ]
    flat = [fit_segment(w, y, 0.0, 0.0) for w, y in parts]
    lines = [
        fit_segment(w, y, *fit_line(w, y)[:2]) if len(y) >= MIN_LEVEL else None for w, y in parts
    ]
    drifting = [
        line is not None
        and len(y) >= SLOW
        and is_line_better(w, y)
        and line_z(line, line.slope) > limit
        for line, (w, y) in zip(lines, parts, strict=True)
    ]
    if not any(drifting):
        return flat
    known = [line for line in lines if line is not None]
    squares = math.fsum(line.position_squares for line in known)
    slope = math.fsum(line.slope * line.position_squares for line in known) / squares
    fits = []
    for line, mean, drifts, (w, y) in zip(lines, flat, drifting, parts, strict=True):
        if drifts and line is not None:
            fits.append(line)
        elif line is None or line_z(line, line.slope - slope) <= DIFFERENT:
            fits.append(fit_segment(w, y, slope, squares))
        else:
            fits.append(mean)
    return fits


def line_z(line: Fit, slope: float) -> float:
    """Return z of `slope`, by the residuals of the line."""
    if line.squares <= 0 or line.n < MIN_LEVEL:
        return 0.0
    phi = float(correlation(line.products, line.squares, line.n))
    variance = session_variance(line.squares, line.products, phi, line.n - 2)
    of_slope = variance * (1 + phi) / (1 - phi) / line.position_squares
    return float(normal_equivalent(slope**2 / of_slope, line.n - 2))


def measure_segments(
    found: Sessions, cleaned: Cleaned, steps: Steps
) -> tuple[list[Segment], float, float]:
    """Return the segments, the variance of a session, and the correlation of neighboring sessions.

    The noise is pooled over all segments. A segment whose own noise is larger keeps its own.
    """
    fits = fit_segments(found, cleaned, steps.places, steps.limit)
    squares = math.fsum(fit.squares for fit in fits)
    n = len(found.x)
    if n == len(fits) or squares <= n * found.rounding**2:
        return [compute_levels(fit, 0.0, 0.0, 1.0, found.offset) for fit in fits], 0.0, 0.0
    products = math.fsum(fit.products for fit in fits)
    phi = float(correlation(products, squares, n, len(fits)))
    lost = [2 if fit.position_squares else 1 for fit in fits]
    free = max(n - sum(lost), 1)
    pooled = session_variance(squares, products, phi, free)
    segments = []
    for fit, own_lost in zip(fits, lost, strict=True):
        own_free = fit.n - own_lost
        own = (
            session_variance(fit.squares, fit.products, phi, own_free)
            if fit.n > MIN_BEFORE
            else 0.0
        )
        degrees = own_free if own > pooled else free
        segments.append(compute_levels(fit, max(own, pooled), phi, degrees, found.offset))
    return segments, pooled, phi


def session_variance(squares: float, products: float, phi: float, degrees: float) -> float:
    """Return the variance of one session, from the innovations.

    Innovations keep their full degrees of freedom whatever φ is.
    """
    return float(innovation_squares(squares, products, phi)) / degrees / (1 - phi**2)


def compute_levels(fit: Fit, variance: float, phi: float, degrees: float, offset: float) -> Segment:
    """Return the levels at both ends of a segment, with their variance.

    Draper & Smith (1998), "Applied Regression Analysis", chapter 1: the variance of a fitted
    value.
    """
    n, mean = fit.n, fit.mean + offset
    of_mean = variance * float(inflation(n, phi)) / fit.weight
    if not fit.position_squares:
        return Segment(n, mean, mean, of_mean, of_mean, degrees, None)
    reach = (n - 1) / 2
    of_slope = variance * (1 + phi) / (1 - phi) / fit.position_squares
    return Segment(
        n, mean - fit.slope * reach, mean + fit.slope * reach,
        of_mean + reach**2 * of_slope, of_mean - reach**2 * of_slope, degrees,
        line_z(fit, fit.slope),
    )  # fmt: skip


def describe_course(found: Sessions, cleaned: Cleaned, steps: Steps) -> Course:
    """Describe the result in terms of the sessions of the input."""
    segments, variance, phi = measure_segments(found, cleaned, steps)
    is_wandering = phi >= MOST_CORRELATED
    changes = tuple(
        describe_change(found.index[index], (before, after), found.scale, alarm.z, steps.looks)
        for index, alarm, before, after in zip(
            steps.places, steps.alarms, segments[:-1], segments[1:], strict=True
        )
    )
    if is_wandering:
        changes = tuple(replace(change, ratio=None, low=None, high=None) for change in changes)
    last = segments[-1]
    begin = found.index[steps.places[-1]] if steps.places else found.index[0]
    drift = None
    if last.drift_z is not None and last.drift_z > steps.limit and not is_wandering:
        ratio = ratio_interval(last.last, last.first, last, last.covariance, last.variance)
        drift = Drift(begin, *ratio, min(1.0, steps.looks * false_alarm_rate(last.drift_z)))
    level = None
    if last.n >= MIN_LEVEL and not is_wandering:
        half = student_quantile((1 + CONFIDENCE) / 2, last.degrees) * math.sqrt(last.variance)
        low, high = found.scale * (last.last - half), found.scale * (last.last + half)
        level = Interval(found.scale * last.last, low, high, last.n)
    share = detectable_share(last, variance, phi, steps.limit)
    if len(found.x) < MIN_SESSIONS or variance == 0 or is_wandering:
        share = None
    reason = find_missing_reason(len(found.x), last, variance, phi) if share is None else None
    outliers = tuple(found.index[index] for index in cleaned.outliers)
    return Course(changes, level, begin, share, reason, drift, outliers)


def find_missing_reason(nights: int, last: Segment, variance: float, phi: float) -> str:
    """Return why the level or the detectable share is missing."""
    if last.n < MIN_LEVEL:
        return f"{counted(last.n, 'session')}; expected at least {MIN_LEVEL}"
    if nights < MIN_SESSIONS:
        return f"{nights} sessions; changes are looked for from {MIN_SESSIONS} on"
    if phi >= MOST_CORRELATED:
        return "it wanders from session to session: no interval holds"
    if variance == 0:
        return "all sessions of a level are equal: what could be detected is not known"
    return "the level may be 0: no change can be stated as a share of it"


def describe_change(
    index: int, sides: tuple[Segment, Segment], scale: float, alarm: float, looks: int
) -> Change:
    """Describe a step; p is the smaller one of the night that reported it and of today."""
    before, after = sides
    degrees = min(before.degrees, after.degrees)
    spread = after.variance + before.variance
    z = alarm
    if spread > 0:
        step = (after.first - before.last) ** 2 / spread
        z = max(z, float(normal_equivalent(step, degrees)))
    ratio = ratio_interval(after.first, before.last, after, 0.0, before.variance, degrees)
    p = min(1.0, looks * false_alarm_rate(z))
    return Change(index, *ratio, p, scale * before.last, scale * after.first)


def ratio_interval(
    top: float,
    bottom: float,
    of_top: Segment,
    covariance: float,
    of_bottom: float,
    degrees: float | None = None,
) -> tuple[float | None, float | None, float | None]:
    """Return (ratio, low, high) by Fieller's method; all are None if `bottom` may be 0."""
    if bottom == 0:
        return None, None, None
    quantile = student_quantile((1 + CHOSEN_CONFIDENCE) / 2, degrees or of_top.degrees)
    ends = fieller(top, bottom, (of_top.variance, covariance, of_bottom), quantile)
    return (top / bottom, *ends) if ends is not None else (None, None, None)


def detectable_share(last: Segment, variance: float, phi: float, limit: float) -> float | None:
    """Return the shift of the current level that 5 further sessions show with 90 % probability.

    The result is a share of the level, and None if the level may be 0.
    """
    if last.last**2 <= POWER_90**2 * last.variance:
        return None
    error = math.sqrt(last.variance + variance * float(inflation(SOON, phi)) / SOON)
    needed = student_quantile(1 - normal_tail(limit), last.degrees + SOON - 1)
    return (needed + POWER_90) * error / abs(last.last)
