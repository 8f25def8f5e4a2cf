"""What meson.build names is what there is: Meson takes no patterns."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
ROOMS = ("plugins", "jobscripts", "tests")
# In tests/meson.build: the folder of each list, and how its programs begin.
LISTS = {"c_tests": "tests/c/test_", "fuzzers": "tests/fuzz/fuzz_"}


def named() -> set[str]:
    """Return every source of a meson.build, as a path from the root."""
    found = set()
    pages = [path for room in ROOMS for path in (ROOT / room).rglob("meson.build")]
    for page in pages:
        if "failsafe" in page.parts:
            continue
        text = page.read_text(encoding="utf-8")
        for word in re.findall(r"'([\w./-]+\.c)'", text):
            found.add(str((page.parent / word).resolve().relative_to(ROOT)))
        for name, begin in LISTS.items() if page.parent == ROOT / "tests" else ():
            (listed,) = re.findall(rf"^{name} = \[(.*?)^\]", text, re.MULTILINE | re.DOTALL)
            found |= {f"{begin}{word}.c" for word in re.findall(r"'(\w+)'", listed)}
    return found


def test_every_source_is_built_and_none_is_missing() -> None:
    rooms = ("plugins", "jobscripts", "tests/c", "tests/fuzz", "tests/mpi")
    there = {str(path.relative_to(ROOT)) for room in rooms for path in (ROOT / room).rglob("*.c")}
    found = named()
    assert sorted(there - found) == []
    assert [path for path in sorted(found) if not (ROOT / path).exists()] == []
