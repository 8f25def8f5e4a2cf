"""What of a shared node's joules can be a job's, against what was computed by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import duckdb
import pytest

from steelyard.analysis.store import energy_shares as shares
from steelyard.analysis.store.energy_shares import EnergyShare, IdlePower

Row = tuple[float, float | None, float | None, float | None]  # elapsed, energy, own, node's CPU
ROUGH_S = 0.02  # ticks of one window, beside 2 % of the node's CPU time
R = 3.0


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE samples (run_id VARCHAR, attempt VARCHAR, node VARCHAR, "
            "elapsed_s DOUBLE, energy_j DOUBLE, cpu_s DOUBLE, node_cpu_s DOUBLE)"
        )
        yield connection


def put(
    connection: duckdb.DuckDBPyConnection, rows: Iterable[Row], run_id: str = "r", node: str = "n1"
) -> None:
    for row in rows:
        connection.execute(
            "INSERT INTO samples VALUES (?, '1', ?, ?, ?, ?, ?)", [run_id, node, *row]
        )


def only(
    connection: duckdb.DuckDBPyConnection, idle: IdlePower = shares.NOT_KNOWN, ratio: float = R
) -> EnergyShare:
    (found,) = shares.compute_energy_shares(connection, idle, ratio)
    return found


def steady(watts: float, own: float, node_cpu: float, seconds: int = 10) -> list[Row]:
    """Make a sample a second, all of them equal."""
    return [(s, watts * s, own * s, node_cpu * s) for s in range(seconds + 1)]


def bounds(dynamic_j: float, own: float, node_cpu: float) -> tuple[float, float]:
    """Of one window, as docs/energy.md has it."""
    slack = 0.02 * max(node_cpu, own) + ROUGH_S
    others = max(node_cpu - own, 0)
    low = dynamic_j * own / (own + R * (others + slack))
    high = dynamic_j * R * own / (R * own + max(others - slack, 0))
    return low, high


def test_a_quarter_of_a_busy_node_with_known_idle_power(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    """160 W of which 60 idle, 8 CPUs busy, 2 of them the job's: of 1,000 J above idle."""
    put(connection, steady(160, 2, 8))
    found = only(connection, IdlePower({"n1": 60.0}))
    low, high = bounds(1000, 2, 8)
    assert found.low_j == pytest.approx(low) and 80 < low < 100  # 1000 · 2 / (2 + 3 · 6.18)
    assert found.high_j == pytest.approx(high) and 500 < high < 520  # 1000 · 6 / (6 + 5.82)
    assert found.energy_j == pytest.approx(1600)
    assert found.idle_low_j == found.idle_high_j == pytest.approx(600)
    assert found.reason is None


def test_alone_on_the_node_all_that_is_above_idle(connection: duckdb.DuckDBPyConnection) -> None:
    put(connection, steady(100, 4, 4))
    found = only(connection, IdlePower(elsewhere_w=60.0))
    assert found.high_j == pytest.approx(400)
    assert found.low_j == pytest.approx(400 * 4 / (4 + R * 0.1)) and found.low_j > 370


@pytest.mark.parametrize("fifths", range(1, 10))
def test_what_others_did_since_the_last_reading_is_anything(
    connection: duckdb.DuckDBPyConnection, fifths: int
) -> None:
    """The job at work on one processor, others on three, 15 W each; cut short after some fifths of a
    second, where the node's CPU time is read each second."""
    rows = [(n / 5, (60 + 4 * 15.0) * n / 5, n / 5, 4.0 * (n // 5)) for n in range(fifths + 1)]
    put(connection, rows)
    found = only(connection, IdlePower({"n1": 60.0}))
    assert found.low_j is not None and found.high_j is not None
    assert found.low_j <= 15 * fifths / 5 <= found.high_j


def test_idle_power_not_known_is_from_nothing_to_the_least_seen(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    """5 s at 50 W in which the job waited, 5 s at 150 W in which it alone worked."""
    waits = [(s, 50.0 * s, 0.0, 0.1 * s) for s in range(6)]
    works = [(5 + s, 250 + 150.0 * s, 4.0 * s, 0.5 + 4.0 * s) for s in range(1, 6)]
    put(connection, [*waits, *works])
    found = only(connection)
    assert (found.idle_low_j, found.idle_high_j) == (0, pytest.approx(500))
    low, _ = bounds(500, 4, 4)
    assert found.low_j == pytest.approx(low)
    assert found.high_j == pytest.approx(750)  # idle might be nothing


def test_another_job_of_the_node_shows_how_little_it_needs(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    put(connection, steady(200, 2, 4), "busy")
    put(connection, steady(70, 0.01, 0.02), "calm")
    busy = shares.compute_energy_shares(connection)[0]
    assert busy.idle_high_j == pytest.approx(700)
    assert busy.low_j == pytest.approx(bounds(1300, 2, 4)[0])


def test_idle_power_above_what_was_seen_is_what_was_seen(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    put(connection, steady(50, 1, 2))
    found = only(connection, IdlePower({"n1": 80.0, "n2": 1.0}))
    assert found.idle_high_j == found.idle_low_j == pytest.approx(500)
    assert found.low_j == found.high_j == 0


def test_lows_never_add_up_to_more_than_the_node(connection: duckdb.DuckDBPyConnection) -> None:
    for job, own in enumerate((1, 2, 5)):
        put(connection, steady(160, own, 8), str(job))
    found = shares.compute_energy_shares(connection, IdlePower(elsewhere_w=60.0), ratio=1.0)
    # With a ratio of 1 all programs are alike: everything but rounding is distributed.
    assert 960 < sum(share.low_j or 0 for share in found) < 1000


def test_the_node_is_read_once_a_second_and_samples_are_ten_times_as_many(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    """In between its last value is repeated: no time in which nobody worked."""
    often = [(t / 10, 16.0 * t, 0.2 * t, 8.0 * (t // 10)) for t in range(101)]
    put(connection, often)
    found = only(connection, IdlePower(elsewhere_w=60.0))
    assert found.low_j == pytest.approx(bounds(1000, 2, 8)[0])
    assert found.energy_j == pytest.approx(1600)


def test_what_stood_still_until_the_end_is_in_it(connection: duckdb.DuckDBPyConnection) -> None:
    put(connection, [(0, 0, 0, 0), (1, 100, 1, 2), (2, 160, 1, 2), (2.5, 190, 1, 2)])
    found = only(connection, IdlePower(elsewhere_w=60.0))
    assert found.energy_j == pytest.approx(190)
    assert found.low_j == pytest.approx(bounds(40, 1, 2)[0])


def test_samples_from_before_anybody_named_the_job_count_as_none(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    put(connection, [(0, 0, None, 0), (1, 60, None, 0.5), (2, 160, 2, 4.5)])
    found = only(connection, IdlePower(elsewhere_w=60.0))
    assert found.low_j == pytest.approx(bounds(40, 2, 4)[0])


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([(0, 0, 0, None), (1, 9, 1, None)], shares.NO_CPU),
        ([(0, None, 0, 0), (1, None, 1, 1)], shares.NO_ENERGY),
        ([(0, 0, 0, 0), (1, 9, 1, 1), (2, None, 2, 2)], shares.NO_ENERGY),  # a wrap was missed
        ([(0, 0, None, 0), (1, 9, None, 1)], shares.NO_OWN),
    ],
)
def test_what_is_not_known_says_why(
    connection: duckdb.DuckDBPyConnection, rows: list[Row], reason: str
) -> None:
    put(connection, rows)
    found = only(connection)
    assert found.reason == reason
    told = (found.energy_j, found.low_j, found.high_j, found.idle_low_j, found.idle_high_j)
    assert told == (None,) * 5
