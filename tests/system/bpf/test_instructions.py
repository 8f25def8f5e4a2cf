"""What the kernel's program is made of Linux 5.8 knows, whichever clang has compiled it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import ROOT

OBJECT = ROOT / "build/meson/plugins/bpf/job_usage.bpf.o"
EXECUTABLE = 4
WIDE = 0x18  # an address: takes the room of two
ATOMIC, ADD = (0xC3, 0xDB), 0x00  # of 4 and 8 bytes; Linux 5.12 has others, too
SIGN_EXTENDED, SWAPPED, FAR_JUMP = (0x91, 0x89, 0x81), 0xD7, 0x06  # Linux 6.6


def sections(path: Path) -> Iterator[bytes]:
    """Those of an ELF file of 64 bits that hold programs."""
    data = path.read_bytes()
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    for at in range(table, table + size * count, size):
        _, _, flags, _, offset, length = struct.unpack_from("<IIQQQQ", data, at)
        if flags & EXECUTABLE:
            yield data[offset : offset + length]


def instructions(code: bytes) -> Iterator[tuple[int, int]]:
    """Operation and immediate value of each."""
    at = 0
    while at < len(code):
        operation, _, _, value = struct.unpack_from("<BBhi", code, at)
        yield operation, value
        at += 16 if operation == WIDE else 8


def is_newer(operation: int, value: int) -> bool:
    if operation in ATOMIC:
        return value != ADD
    return operation in (*SIGN_EXTENDED, SWAPPED, FAR_JUMP)


def test_the_oldest_kernel_knows_every_instruction() -> None:
    """clang makes an atomic OR of an atomic addition of a constant 0."""
    if not OBJECT.exists():
        pytest.skip("no steelyard-bpf: libbpf-dev or clang was missing when it was built")
    found = [one for code in sections(OBJECT) for one in instructions(code)]
    assert len(found) > 5000
    assert sum(operation in ATOMIC for operation, _ in found) > 100
    assert [one for one in found if is_newer(*one)] == []
