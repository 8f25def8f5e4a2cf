"""Counts and drops the pages of a file in a node's page cache, and requests that over TCP.

Without root, posix_fadvise(2) drops clean pages that no process has mapped, and mincore(2) reports
the remaining ones. This is the node's cache, not that of a file server or of a disk. `CacheControl`
is a TCP port next to the XRootD server. When a client connects to it, the server's node prepares
the one served file as `page_cache` requests, and answers with the result in one line.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import socket
import socketserver
import threading
import time
from pathlib import Path
from typing import Any

PROT_READ, MAP_SHARED = 1, 1
# Pages that are being read or written, or mapped by an ending process, cannot be dropped yet. If no
# page can be dropped at all, further tries are useless.
TRIES, TRIES_OF_SOME, PAUSE_S = 20, 200, 0.05


class PagesError(Exception):
    """Pages cannot be counted, or stay in memory; the message is one line."""


def cached_share(path: Path) -> float:
    """Return the share of the file's pages that are in memory; raise PagesError if unknown."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        # For a file of another user the kernel reports all pages as in memory, except to root
        # (mm/mincore.c, 5.2).
        is_owner = os.geteuid() in (0, os.fstat(file.fileno()).st_uid)
        if not is_owner and not os.access(path, os.W_OK):
            raise PagesError(
                f"{path} belongs to somebody else: the kernel does not report which of its pages are in memory"
            )
        found = resident(file.fileno(), size)
    return sum(found) / len(found) if found else 0.0


def resident(descriptor: int, size: int) -> list[int]:
    """Return 1 for each page in memory, 0 for the others."""
    count = -(-size // mmap.PAGESIZE)
    if count == 0:
        return []
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    address = libc.mmap(None, size, PROT_READ, MAP_SHARED, descriptor, 0)
    if address == ctypes.c_void_p(-1).value:
        raise PagesError(f"mmap: {os.strerror(ctypes.get_errno())}")
    vector = (ctypes.c_ubyte * count)()
    try:
        if libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), vector) != 0:
            raise PagesError(f"mincore: {os.strerror(ctypes.get_errno())}")
    finally:
        libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))
    return [page & 1 for page in vector]


def drop_pages(path: Path) -> None:
    """Drop all pages from memory; raise PagesError if some stay, as all do on tmpfs."""
    for number in range(TRIES_OF_SOME):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        share = cached_share(path)
        if share == 0:
            return
        if share == 1 and number >= TRIES:
            break
        time.sleep(PAUSE_S)
    raise PagesError(
        f"page_cache = cold: {100 * share:.3g} % of {path} stays in memory, none was expected "
        "(a file system in memory such as tmpfs has nowhere else to put it)"
    )


def before_iteration(path: Path, page_cache: str) -> float | None:
    """Drop the file's pages if "cold"; return the share in memory, or None if unknown."""
    if page_cache == "cold":
        drop_pages(path)
        return 0.0
    try:
        return cached_share(path)
    except PagesError:
        return None


PATIENCE_S = 120.0


class CacheControl(socketserver.TCPServer):
    """Answers requests one after another, in its own thread."""

    address_family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET

    def __init__(self, path: Path, page_cache: str) -> None:
        self.path, self.page_cache = path, page_cache
        super().__init__(("", 0), Answer)

    def server_bind(self) -> None:
        """Listen for IPv4, too, whatever address the node's name has."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    @property
    def port(self) -> int:
        """The port where it listens."""
        return int(self.server_address[1])

    def open(self) -> None:
        """Start answering; it ends with the process."""
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Answer(socketserver.BaseRequestHandler):
    """One request."""

    server: CacheControl

    def handle(self) -> None:
        """Prepare the file and answer."""
        self.request.sendall((json.dumps(prepare(self.server)) + "\n").encode())


def prepare(control: CacheControl) -> dict[str, Any]:
    """Return the answer, which is an error if pages stay in memory."""
    try:
        return {"cached_share": before_iteration(control.path, control.page_cache)}
    except (PagesError, OSError) as error:
        return {"error": str(error)}


def request_cold_cache(host: str, port: int) -> float | None:
    """Request preparation before an iteration; return the cached share on the server's node.

    None: unknown. Raises PagesError if pages stay in memory.
    """
    with socket.create_connection((host, port), PATIENCE_S) as line, line.makefile() as file:
        answer = json.loads(file.readline() or '{"error": "no answer from the server\'s node"}')
    if "error" in answer:
        raise PagesError(str(answer["error"]))
    share = answer["cached_share"]
    return None if share is None else float(share)
