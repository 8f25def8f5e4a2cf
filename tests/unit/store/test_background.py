"""Work in the background: in order, its errors are reported, and an end is final."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import duckdb
import pytest

from steelyard.analysis.base.parallel_work import AHEAD, Background, OrderedWorker


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (n BIGINT)")
        yield connection


def insert(connection: duckdb.DuckDBPyConnection, number: int) -> None:
    connection.execute(f"INSERT INTO t SELECT {number} + count(*) FROM t")


def test_work_is_done_in_order(connection: duckdb.DuckDBPyConnection) -> None:
    background = Background(connection)
    for number in range(3 * AHEAD):
        background.submit(lambda number=number: insert(connection, number))
    background.wait()
    background.close(interrupt=False)
    found = connection.execute("SELECT n FROM t ORDER BY n").fetchall()
    assert found == [(2 * number,) for number in range(3 * AHEAD)]


def test_an_error_is_raised_and_not_lost(connection: duckdb.DuckDBPyConnection) -> None:
    background = Background(connection)
    background.submit(lambda: insert(connection, 1))
    background.submit(lambda: connection.execute("SELECT nonsense") and None)
    with pytest.raises(duckdb.BinderException, match="nonsense"):
        background.wait()
    background.close(interrupt=True)
    assert connection.execute("SELECT count(*) FROM t").fetchall() == [(1,)]


def test_an_interrupt_ends_what_is_running_and_what_waits(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    begun = threading.Event()

    def for_ever() -> None:
        begun.set()
        connection.execute(
            "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b"
        )

    background = Background(connection)
    background.submit(for_ever)
    background.submit(lambda: insert(connection, 1))
    begun.wait()
    background.close(interrupt=True)  # comes back, or the test's time-out tells
    assert connection.execute("SELECT count(*) FROM t").fetchall() == [(0,)]


def test_what_has_not_begun_can_be_called_off() -> None:
    begun, may_end, done = threading.Event(), threading.Event(), list[int]()

    def first() -> None:
        begun.set()
        may_end.wait(60)
        done.append(1)

    worker = OrderedWorker("worker", ahead=2)
    worker.submit(first)
    worker.submit(lambda: done.append(2))
    begun.wait(60)
    worker.cancel()
    may_end.set()
    worker.end()
    assert done == [1]
