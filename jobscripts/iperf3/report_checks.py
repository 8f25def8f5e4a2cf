"""Checks that a report of iperf3 has all streams and intervals, and that its figures agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from steelyard.jobscripts.errors import OutputError
from steelyard.jobscripts.pairs import number

Json = dict[str, object]
LATE = 0.1  # how much earlier a transfer may end, as a share of the requested seconds
GAP_S = 0.1  # iperf3 omits a last interval that is shorter and had no data (iperf_api.c)
ROUNDED = 1e-4  # bytes and rates are from one count each; seconds are printed with six decimals


def check_report(where: str, report: object, end: Json, parameters: Mapping[str, object]) -> None:
    """Raise OutputError unless each requested stream is in every interval and in the sums."""
    expected = int(str(parameters["streams"])) * (2 if parameters["direction"] == "both" else 1)
    streams = ends(where, end)
    if len(streams) != expected:
        raise OutputError(where, f"{len(streams)} streams in the end, {expected} were expected")
    _sums(where, end, streams)
    sums = [end[key] for key in ("sum_sent", "sum_received") if key in end]
    _intervals(where, report, expected, min(number(where, total, "seconds") for total in sums))


def requested_seconds(parameters: Mapping[str, object]) -> float:
    """Return the requested duration in s."""
    return float(str(parameters["seconds"]))


def ends(where: str, end: Json) -> list[dict[str, Json]]:
    """Return the final section of each stream: `sender` and `receiver` (TCP) or `udp`."""
    rows = end.get("streams")
    if not isinstance(rows, list) or not all(_is_stream(row) for row in rows):
        raise OutputError(where, "no 'streams' with a 'sender' (TCP) or 'udp' in each")
    return rows


def _is_stream(row: object) -> bool:
    return isinstance(row, dict) and any(
        isinstance(row.get(key), dict) for key in ("sender", "udp")
    )


def rate(where: str, total: Json) -> float:
    """Return the reported rate in bit/s, after a comparison with bytes and seconds."""
    reported = number(where, total, "bits_per_second")
    count, seconds = number(where, total, "bytes"), number(where, total, "seconds")
    true = 8 * count / seconds if seconds > 0 else 0.0
    if abs(reported - true) > ROUNDED * true:
        raise OutputError(
            where,
            f"{reported:g} bit/s is reported, {count:.0f} bytes in {seconds:g} s are {true:g} bit/s",
        )
    return reported


def _sums(where: str, end: Json, streams: list[dict[str, Json]]) -> None:
    """Compare the streams' bytes, by direction, with the reported sums."""
    for back, suffix in ((False, ""), (True, "_bidir_reverse")):
        rows = [row for row in streams if _is_back(row, end) == back]
        for kind, name in (
            ("sender", "sum_sent"),
            ("receiver", "sum_received"),
            ("udp", "sum_sent"),
        ):
            parts = [row[kind] for row in rows if kind in row]
            if parts:
                _sum(where, end.get(name + suffix), f"{name}{suffix}", kind, parts)


def _is_back(row: dict[str, Json], end: Json) -> bool:
    """Whether a stream is of the second direction: then the client did not send it."""
    summary = row.get("sender") or row.get("udp") or {}
    return "sum_sent_bidir_reverse" in end and not summary.get("sender")


def _sum(where: str, total: object, name: str, kind: str, parts: list[Json]) -> None:
    reported = number(where, total, "bytes")
    true = sum(number(where, item, "bytes") for item in parts)
    if abs(reported - true) > ROUNDED * true:
        raise OutputError(
            where,
            f"{name} is {reported:.0f} bytes, its {len(parts)} streams ({kind}) have {true:.0f}",
        )


def _intervals(where: str, report: object, streams: int, seconds: float) -> None:
    """Check that the measured intervals are contiguous until the end, with all streams in each."""
    reached = 0.0
    for start, end, count in measured(where, report):
        if abs(start - reached) > GAP_S:
            raise OutputError(
                where, f"an interval begins at {start:g} s, expected was {reached:g} s"
            )
        if count != streams:
            raise OutputError(
                where, f"{count} streams from {start:g} to {end:g} s, {streams} were expected"
            )
        reached = end
    if reached < seconds - GAP_S:
        raise OutputError(where, f"the intervals end at {reached:g} s, {seconds:g} s were expected")


def measured(where: str, report: object) -> Iterator[tuple[float, float, int]]:
    """Yield start (s), end (s) and number of streams of every interval that is not omitted."""
    rows = report.get("intervals") if isinstance(report, dict) else None
    for row in rows if isinstance(rows, list) else []:
        streams = row.get("streams") if isinstance(row, dict) else None
        if not isinstance(streams, list) or not isinstance(row.get("sum"), dict):
            raise OutputError(where, "an interval without 'streams' and 'sum'")
        if not row["sum"].get("omitted"):
            start, end = (number(where, row["sum"], key) for key in ("start", "end"))
            yield start, end, len(streams)
