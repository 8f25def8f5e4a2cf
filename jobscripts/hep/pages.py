"""Which pages of a file are in this node's page cache, and how to put them out of it.

Without root: posix_fadvise(2) drops clean pages that nobody has mapped, mincore(2) tells what is
left. That is this node's cache, not that of a file server behind it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from pathlib import Path

PROT_READ, MAP_SHARED = 1, 1
# A page that is just being read or written, or that who is ending has mapped, cannot go yet. Where
# not one goes it is no use to wait.
TRIES, TRIES_OF_SOME, PAUSE_S = 20, 200, 0.05


class PagesError(Exception):
    """Pages that cannot be counted, or that stay in memory; one line."""


def cached_share(path: Path) -> float:
    """The share of the file's pages that are in memory; PagesError where it cannot be known."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        # Of a file of somebody else's the kernel says that all is in memory (mm/mincore.c, 5.2).
        if os.fstat(file.fileno()).st_uid != os.geteuid() and not os.access(path, os.W_OK):
            raise PagesError(
                f"{path} belongs to somebody else: which of its pages are in memory is not told"
            )
        found = resident(file.fileno(), size)
    return sum(found) / len(found) if found else 0.0


def resident(descriptor: int, size: int) -> list[int]:
    """1 for each page in memory, 0 for the others."""
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


def forget(path: Path) -> None:
    """Put all pages out of memory; PagesError when some stay, as on tmpfs all do."""
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
    """Cold: nothing of the file is in memory afterwards. The share that is; None: not known."""
    if page_cache == "cold":
        forget(path)
        return 0.0
    try:
        return cached_share(path)
    except PagesError:
        return None
