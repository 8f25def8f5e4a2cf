"""The C parts in CONTRIBUTING.md's map: a room includes only from itself and rooms above it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# Whose headers each plugin may include besides its own. Within plugins/node the map's order rules.
PLUGINS: dict[str, set[str]] = {
    "node": {"facts"},
    "slurm": {"facts", "node"},
    "slurmdb": {"node", "slurm"},
    "time": {"facts", "node"},
    "bpf": {"node"},
    "mpi": set(),
    "reader": set(),
    "uml": set(),
}
MADE_BY_THE_BUILD = {"job_usage_object.h", "layout_hash.h"}
# No room may depend on the program; its parts are in the library for their tests only.
TOPMOST = "plugins/node/program"
# main() and the commands and callbacks that are called from tables.
DECLARED = re.compile(r"main|cmd_\w+|spank_steelyard")


def mapped(root: Path = ROOT) -> list[str]:
    """Return the rooms of facts and plugins, in the map's order."""
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return re.findall(r"^\| (facts|plugins/[\w/]+) \|", text, re.MULTILINE)


def sources(root: Path = ROOT) -> list[Path]:
    return sorted(path for path in (root / "plugins").rglob("*.[ch]"))


def room_of(path: Path, rooms: list[str], root: Path = ROOT) -> str | None:
    """Return the innermost room of the map that contains a file."""
    above = (folder.relative_to(root).as_posix() for folder in path.parents if folder != root)
    return next((folder for folder in above if folder in rooms), None)


def includes(path: Path) -> Iterator[tuple[int, str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        found = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
        if found and found[1] not in MADE_BY_THE_BUILD:
            yield number, found[1]


def found_at(path: Path, name: str, root: Path) -> Path | None:
    """Return the file that the compiler includes: next to the source, in plugins/node, or at the
    top.
    """
    places = (path.parent / name, root / "plugins/node" / name, root / name)
    return next((place for place in places if place.is_file()), None)


def may_include(here: str, there: str, rooms: list[str]) -> bool:
    plugin, other = (room.removeprefix("plugins/").split("/")[0] for room in (here, there))
    if here == there:
        return True
    if plugin == other:
        return rooms.index(there) < rooms.index(here)
    return other in PLUGINS[plugin] and there != TOPMOST


def upward(root: Path = ROOT) -> Iterator[str]:
    """Yield includes against the order, as FILE:LINE: NAME."""
    rooms = mapped(root)
    for path in sources(root):
        here = room_of(path, rooms, root)
        for line, name in includes(path):
            target = found_at(path, name, root)
            there = target and room_of(target, rooms, root)
            by_room = ".." not in name
            if not (here and there and by_room and may_include(here, there, rooms)):
                yield f"{path.relative_to(root)}:{line}: {name}"


def test_a_room_includes_only_from_rooms_above_it() -> None:
    assert list(upward()) == []
    assert sum(len(list(includes(path))) for path in sources()) > 500


def test_every_folder_of_c_is_a_room_of_the_map() -> None:
    rooms = mapped()
    folders = {path.parent for path in (ROOT / "plugins").rglob("*.[ch]")}
    assert [f"{f}" for f in sorted(folders) if room_of(f / "x.c", rooms) is None] == []
    node = {f.relative_to(ROOT).as_posix() for f in folders if "node" in f.relative_to(ROOT).parts}
    assert {room for room in rooms if room.startswith("plugins/node/")} == node


def test_every_c_file_includes_the_header_that_declares_it_first() -> None:
    """Its own, so that it is seen to need no other; where it has none, one of its room's. But `main`
    and what is declared together, by its one caller."""
    wrong = []
    for path in sources():
        plugin = path.relative_to(ROOT).parts[1]
        if path.suffix != ".c" or plugin not in {"node", "slurm"} or DECLARED.fullmatch(path.stem):
            continue
        first = next(includes(path), (0, ""))[1]
        name, own = Path(first).name, path.with_suffix(".h")
        if not path.with_name(name).is_file() or (own.is_file() and name != own.name):
            wrong.append(f"{path.relative_to(ROOT)}: {first}")
    assert wrong == []


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rooms with the names of all their files, of which only the map is read."""
    root = tmp_path_factory.mktemp("tree")
    for path in [*sources(), *(ROOT / "facts").glob("*.def")]:
        copy = root / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.touch()
    (root / "CONTRIBUTING.md").write_bytes((ROOT / "CONTRIBUTING.md").read_bytes())
    return root


@pytest.mark.parametrize(
    ("file", "line", "seen"),
    [
        ("node/base/planted.c", '#include "sampler/child_state.h"', True),
        ("node/base/planted.c", '  #  include "meters/readings_to_joules.h"', True),
        ("node/netem/kernel/planted.h", '#include "netem/verify/verify.h"', True),
        ("node/netem/spec/planted.h", '#include "netem/netem.h"', True),
        ("node/record/planted.c", '#include "../sampler/child_state.h"', True),
        ("node/record/planted.c", '#include "../base/file.h"', True),
        ("node/base/planted.c", '#include "../../slurm/step_identity.h"', True),
        ("slurm/planted.c", '#include "program/cold_cache.h"', True),
        ("uml/planted.c", '#include "base/file.h"', True),
        ("node/base/planted.c", '#include "no/such.h"', True),
        ("node/sampler/planted.c", '#include "base/file.h"', False),
        ("node/netem/planted.c", '#include "netem/verify/verify.h"', False),
        ("slurm/planted.c", '#include "netem/netem.h"', False),
        ("slurm/planted.c", '#include "step_identity.h"', False),
        ("node/base/planted.c", '#include "facts/quantities.def"', False),
    ],
)
def test_an_upward_include_is_seen(tree: Path, file: str, line: str, seen: bool) -> None:
    planted = tree / "plugins" / file
    planted.write_text(f"\n{line}\n", encoding="utf-8")
    found = list(upward(tree))
    planted.unlink()
    name = line.split('"')[1]
    assert found == ([f"plugins/{file}:2: {name}"] if seen else [])
