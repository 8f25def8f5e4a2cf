"""The sample reader in C, if it is installed: it takes a quarter of DuckDB's time."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path

LIBRARY = "libsteelyard-samples.so"
# The checkout, or the package folder `steelyard` in site-packages.
ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "build"
# In a wheel for a platform (packaging/wheel/wheel.sh): programs and this library.
BUNDLED = ROOT / "libexec"
# Where `make install-programs` and the packages install them.
INSTALLED = (Path("/usr/local/libexec/steelyard"), Path("/usr/libexec/steelyard"))

# plugins/reader/samples_reader.h
SKIP, INTEGER, REAL = 0, 1, 2
FULL = -2

ReadSamples = Callable[..., int]


@functools.cache
def read_samples() -> ReadSamples | None:
    """Return `steelyard_read_samples`; None: the library does not exist or cannot be used here.

    $STEELYARD_SAMPLES names another library; if it is empty, none is used.
    """
    import ctypes

    named = os.environ.get("STEELYARD_SAMPLES")
    places = [folder / LIBRARY for folder in (BUILT / "lib", BUNDLED, *INSTALLED)]
    for path in places if named is None else [Path(named)]:
        if path.is_file():
            try:
                function = ctypes.CDLL(str(path)).steelyard_read_samples
            except (OSError, AttributeError):  # of another architecture or version
                return None
            function.restype = ctypes.c_int64
            function.argtypes = [
                ctypes.c_char_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_char_p,
                ctypes.c_void_p, ctypes.c_size_t,
            ]  # fmt: skip
            read: ReadSamples = function
            return read
    return None
