"""The page cache of the input's node before every iteration, and whether a copy is long enough."""

from __future__ import annotations

import mmap
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.system.hep.conftest import Server, Study

from steelyard.jobscripts import registry
from steelyard.jobscripts.hep import minimum_copy_size, page_cache


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Of a hundred pages, on a disk."""
    path = tmp_path / "file"
    path.write_bytes(os.urandom(100 * os.sysconf("SC_PAGESIZE")))
    if in_memory_only(path):
        pytest.skip(f"{tmp_path} is on a file system in memory: nothing there can be cold")
    return path


def in_memory_only(path: Path) -> bool:
    kind = subprocess.run(
        ["stat", "-f", "-c", "%T", str(path)], capture_output=True, text=True, check=True
    )
    return kind.stdout.strip() in ("tmpfs", "ramfs")


def test_pages_are_counted_and_put_out_of_memory(file: Path) -> None:
    assert page_cache.cached_share(file) == 1
    before = file.read_bytes()
    page_cache.drop_pages(file)
    assert page_cache.cached_share(file) == 0
    assert file.read_bytes() == before
    assert page_cache.cached_share(file) == 1
    assert page_cache.before_iteration(file, "warm") == 1
    assert page_cache.before_iteration(file, "cold") == 0


def test_who_still_has_a_page_is_waited_for(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a second a cold run was refused: 4 % of its input stayed, on a busy machine."""
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ) as page:
        assert page[0] == file.read_bytes()[0]  # mapped, as a server's that is ending
        pauses: list[float] = []

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if sum(pauses) > 2:
                page.close()

        monkeypatch.setattr(time, "sleep", pause)
        page_cache.drop_pages(file)
    assert page_cache.cached_share(file) == 0


def test_an_empty_file_has_no_pages(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    assert page_cache.cached_share(tmp_path / "empty") == 0


def test_what_stays_in_memory_is_refused() -> None:
    path = Path(f"/dev/shm/steelyard-test-{os.getpid()}")
    if (
        not os.access("/dev/shm", os.W_OK)
        or Path("/dev/shm").stat().st_dev == Path("/").stat().st_dev
    ):
        pytest.skip("no tmpfs at /dev/shm")
    try:
        path.write_bytes(b"x" * 9999)
        with pytest.raises(
            page_cache.PagesError, match="100 % of .* stays in memory, none was expected"
        ):
            page_cache.drop_pages(path)
    finally:
        path.unlink(missing_ok=True)


ACCESS = [
    ("roottree", {"access": "file"}),
    ("roottree", {"access": "xrootd"}),
    ("xrootd", {"mode": "analysis", "clients": 2}),
    ("xrootd", {"mode": "local"}),
]


@pytest.mark.parametrize(("benchmark", "given"), ACCESS)
def test_every_iteration_of_a_cold_run_begins_cold(
    study: Study,
    file: Path,
    benchmark: str,
    given: dict[str, object],
) -> None:
    """The second and third ones, too, whoever uses the file."""
    del file  # only for its skip
    study.completed(benchmark, page_cache="cold", iterations=3, **given)
    found = [(r.iteration, r.value) for r in study.results() if r.metric == "cached_share"]
    assert found == [(1, 0.0), (2, 0.0), (3, 0.0)]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_cache_control_of_the_servers_node_answers_both_kinds_of_address(
    file: Path, host: str
) -> None:
    if host == "::1" and not Path("/proc/net/if_inet6").exists():
        pytest.skip("no IPv6 here")
    control = page_cache.CacheControl(file, "cold")
    control.open()
    try:
        assert page_cache.cached_share(file) == 1
        assert page_cache.request_cold_cache(host, control.port) == 0
        assert page_cache.cached_share(file) == 0
    finally:
        control.shutdown()
        control.server_close()


def test_a_warm_run_says_that_it_was(study: Study) -> None:
    """Tests of the cluster empty the machine's page cache concurrently: hence the retries."""
    found: list[tuple[int, float | None]] = []
    for _ in range(5):
        study.completed("roottree", iterations=2)
        results = study.results()
        found = [(r.iteration, r.value) for r in results if r.metric == "cached_share"]
        if found == [(1, 1.0), (2, 1.0)]:
            return
    pytest.fail(f"five runs, none of them warm: {found}")


def test_cold_at_a_given_server_is_refused(
    study: Study,
    start: Callable[..., Server],
) -> None:
    found = study.run("xrootd", url=start().url, page_cache="cold", verify=False)
    assert found["state"] == "failed"
    assert "at a server that is not the run's own, whose page cache cannot be" in found["reason"]


# --- a copy long enough to measure throughput ---


def test_a_copy_says_its_round_trip_and_how_long_it_should_be(study: Study) -> None:
    found = study.completed("xrootd", mode="xrdcp")
    assert 0 < found["rtt_s"] < found["seconds"]
    needed = minimum_copy_size.bytes_needed(found["bytes_read"], found["seconds"], found["rtt_s"])
    assert found["bytes_needed"] == pytest.approx(needed, rel=1e-9)
    assert "bytes_needed" not in study.completed("xrootd", mode="analysis")


@pytest.mark.parametrize(("rate", "rtt_s"), [(12.5e6, 0.1), (125e6, 0.05), (1e9, 0.0002)])
@pytest.mark.parametrize("size", [5e6, 100e6])
def test_what_is_needed_is_a_copy_whose_round_trips_are_a_tenth(
    size: float, rate: float, rtt_s: float
) -> None:
    """By a model of a copy that is not ours to fit: its round trips, then its bytes at the rate."""
    trips = minimum_copy_size.trips(size)
    seconds = trips * rtt_s + size / rate
    needed = minimum_copy_size.bytes_needed(size, seconds, rtt_s)
    if trips * rtt_s < 0.9 * seconds:
        assert trips * rtt_s / (trips * rtt_s + needed / rate) == pytest.approx(0.1)
    else:  # of the rate nothing is known but that it is at least so much
        assert needed > 8 * size


def test_the_address_of_a_url() -> None:
    assert minimum_copy_size.address_of("root://data.example.org//store/x.root") == (
        "data.example.org",
        1094,
    )
    assert minimum_copy_size.address_of("root://me@[::1]:2094//x.root") == ("::1", 2094)
    assert minimum_copy_size.round_trip_s("127.0.0.1", 9) is None


def test_split_is_refused_with_what_to_use() -> None:
    with pytest.raises(Exception, match="compare flat with unsplit"):
        registry.load("roottree").check_parameters({"structure": "split"})
