"""Reads, counts and times the bytes of a file, local or at an XRootD server, for uproot.

Every byte that uproot requests is counted in one `Tally`. Reads block. uproot itself would wait
just as long for a complete vector read, but could not be timed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

Range = tuple[int, int]  # start, stop


class ReadError(Exception):
    """A file cannot be opened or read; the message is one line."""


@dataclass
class Tally:
    """Counts of reads and bytes; `wait_s` is the time that the analysis waited for them."""

    read_requests: int = 0
    vector_read_requests: int = 0
    vector_read_segments: int = 0
    bytes_read: int = 0
    wait_s: float = 0.0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Add the time of the `with` statement to `wait_s`."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.wait_s += time.perf_counter() - begin


class Reader(Protocol):
    """An open file; `tally` counts its reads."""

    tally: Tally
    size: int

    def read(self, ranges: Sequence[Range]) -> list[bytes]:
        """Return the bytes of some ranges."""

    def close(self) -> None:
        """Close the file."""


class LocalReader:
    """A file of a mounted file system; one pread(2) per range."""

    def __init__(self, path: str, tally: Tally) -> None:
        self.tally, self.where = tally, path
        try:
            self.file = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise ReadError(f"{path}: {error.strerror}") from error
        self.size = os.fstat(self.file).st_size

    def read(self, ranges: Sequence[Range]) -> list[bytes]:
        """Return the bytes of some ranges; raise ReadError at the end of the file."""
        return [self._one(start, stop) for start, stop in ranges]

    def _one(self, start: int, stop: int) -> bytes:
        found = b""
        while len(found) < stop - start:
            self.tally.read_requests += 1
            piece = os.pread(self.file, stop - start - len(found), start + len(found))
            if not piece:
                raise ReadError(
                    f"{self.where}: expected the bytes up to {stop}; found: the file's end at "
                    f"{start + len(found)}"
                )
            self.tally.bytes_read += len(piece)
            found += piece
        return found

    def close(self) -> None:
        """Close the file."""
        os.close(self.file)


class XRootDReader:
    """A file at an XRootD server: a read for one range, vector reads for several (if `vector`)."""

    # XRootD's defaults (XProtocol.hh, maxRvecsz, maxRvecln), if the server does not report its own.
    most_ranges, most_bytes = 1024, 2097136

    def __init__(self, url: str, tally: Tally, vector: bool = True) -> None:
        from XRootD import client

        self.tally, self.vector, self.where = tally, vector, url
        self.file = client.File()
        status, _ = self.file.open(url)
        self._check(status, url)
        status, about = self.file.stat()
        self._check(status, url)
        self.size = int(about.size)
        if vector:
            self._query_limits(client)

    def _query_limits(self, client: Any) -> None:
        server = client.URL(self.file.get_property("DataServer"))
        system = client.FileSystem(f"{server.protocol}://{server.hostid}/")
        status, answer = system.query(client.flags.QueryCode.CONFIG, "readv_iov_max readv_ior_max")
        fields = bytes(answer or b"").split()
        if status.ok and len(fields) == 2 and all(word.isdigit() for word in fields):
            self.most_ranges, self.most_bytes = int(fields[0]), int(fields[1])

    @staticmethod
    def _check(status: Any, what: str) -> None:
        if not status.ok:
            raise ReadError(f"{what}: {str(status.message).strip()}")

    def read(self, ranges: Sequence[Range]) -> list[bytes]:
        """Return the bytes of some ranges; raise ReadError if the server sends others."""
        if len(ranges) == 1 or not self.vector:
            return [self._single(start, stop) for start, stop in ranges]
        pieces = [piece for one in ranges for piece in self._cut(*one)]
        found: dict[int, bytes] = {}
        for i in range(0, len(pieces), self.most_ranges):
            found.update(self._vector(pieces[i : i + self.most_ranges]))
        return [b"".join(found[start] for start, _ in self._cut(*one)) for one in ranges]

    def _cut(self, start: int, stop: int) -> list[Range]:
        step = self.most_bytes
        return [(at, min(at + step, stop)) for at in range(start, stop, step)]

    def _single(self, start: int, stop: int) -> bytes:
        self.tally.read_requests += 1
        status, data = self.file.read(start, stop - start)
        self._check(status, f"{self.where}: read of {stop - start} bytes at {start}")
        if len(data) != stop - start:
            raise ReadError(
                f"{self.where}: read at {start}: {len(data)} bytes instead of {stop - start}"
            )
        self.tally.bytes_read += len(data)
        return bytes(data)

    def _vector(self, ranges: Sequence[Range]) -> dict[int, bytes]:
        self.tally.vector_read_requests += 1
        self.tally.vector_read_segments += len(ranges)
        status, answer = self.file.vector_read(
            chunks=[(start, stop - start) for start, stop in ranges]
        )
        self._check(status, f"{self.where}: vector read of {len(ranges)} ranges")
        found = {int(chunk.offset): bytes(chunk.buffer) for chunk in answer.chunks}
        for start, stop in ranges:
            if len(found.get(start, b"")) != stop - start:
                raise ReadError(f"{self.where}: vector read: the range at {start} is not whole")
        self.tally.bytes_read += sum(stop - start for start, stop in ranges)
        return found

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def open_reader(where: str, tally: Tally, vector: bool) -> Reader:
    """Return a reader for a URL or a path."""
    if where.startswith(("root://", "roots://", "xroot://")):
        return XRootDReader(where, tally, vector)
    return LocalReader(where, tally)


class Ahead:
    """Fetches ranges while the analysis works on earlier ones."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.thread = ThreadPoolExecutor(1)
        self.pending: dict[Range, tuple[Future[list[bytes]], int]] = {}

    def fetch(self, ranges: Sequence[Range]) -> None:
        """Begin to read the ranges that are not fetched yet."""
        new = [one for one in ranges if one not in self.pending]
        if new:
            future = self.thread.submit(self.reader.read, new)
            self.pending.update({one: (future, i) for i, one in enumerate(new)})

    def read(self, ranges: Sequence[Range]) -> list[bytes]:
        """Return the bytes of the ranges; fetched ones are returned once."""
        missing = [one for one in ranges if one not in self.pending]
        found = dict(zip(missing, self.reader.read(missing) if missing else [], strict=True))
        for one in ranges:
            if one not in found:
                future, i = self.pending.pop(one)
                found[one] = future.result()[i]
        return [found[one] for one in ranges]

    def close(self) -> None:
        """Wait for the thread, then close the file."""
        self.thread.shutdown()
        self.reader.close()


def source_class(where: str, tally: Tally, vector: bool) -> Any:
    """Return a class for uproot's option `handler`, whose instances read `where`."""
    from uproot.source.chunk import Chunk, Source
    from uproot.source.futures import TrivialFuture

    class CountedSource(Source):  # type: ignore[misc]
        """Presents a Reader to uproot."""

        def __init__(self, file_path: str, **options: object) -> None:
            super().__init__()
            self._file_path = file_path
            with tally.waiting():
                self.ahead = Ahead(open_reader(where, tally, vector))
            self._num_bytes = self.ahead.reader.size
            self._closed = False

        def chunk(self, start: int, stop: int) -> Any:
            """Return one range."""
            return self._fetched([(start, stop)])[0]

        def chunks(self, ranges: list[Range], notifications: Any) -> list[Any]:
            """Return several ranges."""
            found = self._fetched(ranges)
            for chunk in found:
                notifications.put(chunk)
            return found

        def _fetched(self, ranges: Sequence[Range]) -> list[Any]:
            with tally.waiting():
                pieces = self.ahead.read(ranges)
            return [
                Chunk(self, start, stop, TrivialFuture(piece))
                for (start, stop), piece in zip(ranges, pieces, strict=True)
            ]

        @property
        def closed(self) -> bool:
            """Whether the file is closed."""
            return self._closed

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *exc: object) -> None:
            if not self._closed:
                self._closed = True
                self.ahead.close()

    return CountedSource
