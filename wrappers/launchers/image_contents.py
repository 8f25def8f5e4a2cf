"""What an image lacks of what runs in it will start: programs by name, libraries of programs that are
brought in. One container is started for it; where nothing can be looked at, nothing is said.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from steelyard.wrappers.launchers import image
from steelyard.wrappers.launchers.launcher import Launcher
from steelyard.wrappers.launchers.launcher_checks import run_quickly

MOST = 40  # programs of a folder
# Inside: a line for each thing that is not there. ldd is of the C library's package.
LOOK = """\
brought=
for program; do
    if [[ $program == -- ]]; then
        brought=1
    elif [[ -z $brought ]]; then
        type -P "$program" >/dev/null || printf 'program\\t%s\\n' "$program"
    elif type -P ldd >/dev/null; then
        ldd "$program" 2>&1 | while read -r line; do
            [[ $line != *'not found'* ]] || printf 'library\\t%s\\t%s\\n' "$program" "$line"
        done
    fi
done
"""
MISSING = re.compile(r"(\S+) => not found")
OLD = re.compile(r"version `([^']+)' not found")


@dataclass(frozen=True)
class RequiredPrograms:
    """Of all runs that one image has: its own programs, with the Debian packages that have them (or
    ""), and programs that are brought in."""

    commands: Mapping[str, str]
    programs: tuple[Path, ...]


def find_missing(launcher: Launcher, wanted: RequiredPrograms) -> str | None:
    """One sentence with the command that makes a better one; None: nothing, or not known."""
    if launcher.has_our_programs:
        return None
    argv = enter_command(launcher, wanted.programs)
    done = run_quickly(
        *argv, "bash", "-c", LOOK, "look", *wanted.commands, "--", *map(str, wanted.programs)
    )
    if done.returncode != 0:
        return None  # why it does not start is told elsewhere
    return describe_missing(
        launcher, wanted, [line.split("\t", 2) for line in done.stdout.splitlines()]
    )


def describe_missing(
    launcher: Launcher, wanted: RequiredPrograms, found: list[list[str]]
) -> str | None:
    """What was found not to be there, in words."""
    commands = [fields[1] for fields in found if fields[0] == "program"]
    libraries: dict[str, str] = {}
    versions: dict[str, str] = {}
    for _, program, words in (fields for fields in found if fields[0] == "library"):
        if name := OLD.search(words):
            versions.setdefault(name[1], Path(program).name)
        elif name := MISSING.search(words):
            libraries.setdefault(name[1], Path(program).name)
    if not (commands or libraries or versions):
        return None
    parts = [
        *commands,
        *(f"{names} (of {program})" for program, names in group_by_program(libraries)),
        *(
            f"libraries as new as {names} (of {program})"
            for program, names in group_by_program(versions)
        ),
    ]
    packages = [wanted.commands[name] for name in commands if wanted.commands[name]]
    packages += [package for name in libraries if (package := find_package(name))]
    make = image.format_command(f"{launcher.kind}:{launcher.name}", *dict.fromkeys(packages))
    return f"{launcher.text}: the image lacks {'; '.join(parts)}: say `{make} --force`, or another name"


def group_by_program(names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Of each program, what it misses, commas between."""
    for program in dict.fromkeys(names.values()):
        yield program, ", ".join(name for name, whose in names.items() if whose == program)


def find_package(library: str) -> str | None:
    """The Debian package that has this one here."""
    done = run_quickly("dpkg-query", "--search", f"*/{library}")
    return done.stdout.partition(":")[0] if done.returncode == 0 else None


def list_linked(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Those that are linked to libraries: programs and, of folders, the programs in them."""
    found: dict[Path, None] = {}
    for path in paths:
        inside = sorted(path.iterdir())[:MOST] if path.is_dir() else [path]
        found |= dict.fromkeys(one for one in inside if is_linked(one))
    return tuple(found)


def is_linked(path: Path) -> bool:
    """A program, or a library, in the kernel's format."""
    if not path.is_file() or not os.access(path, os.X_OK | os.R_OK):
        return False
    with path.open("rb") as stream:
        return stream.read(4) == b"\x7fELF"


def enter_command(launcher: Launcher, programs: Iterable[Path]) -> list[str]:
    """The command line up to what is executed inside; programs are there under their names."""
    if launcher.kind in image.ENGINES:
        argv = [launcher.kind]
        if launcher.kind == "podman" and not Path("/run/systemd/system").is_dir():
            argv.append("--cgroup-manager=cgroupfs")
        argv += ["run", "--rm", "--pull=never", "--network=none"]
        argv += [f"--volume={path}:{path}:ro" for path in programs if ":" not in str(path)]
        return [*argv, "--entrypoint=env", launcher.name]
    if launcher.kind == "apptainer":
        binds = [word for path in programs for word in ("--bind", f"{path}:{path}:ro")]
        return ["apptainer", "exec", "--no-home", *binds, launcher.name]
    if launcher.kind == "systemd-nspawn":
        binds = [f"--bind-ro={path}" for path in programs if ":" not in str(path)]
        argv = ["systemd-nspawn", "--quiet", f"--directory={launcher.name}", "--read-only"]
        argv += ["--volatile=overlay", "--register=no", "--keep-unit", "--as-pid2"]
        argv += [
            "--console=pipe",
            f"--machine=steelyard-look-{os.getpid()}",
            *binds,
            "/usr/bin/env",
        ]
        return argv
    config = image.lxc_folder() / launcher.name / "config"
    argv = ["setsid", "lxc-execute", f"--name=steelyard-look-{os.getpid()}", f"--rcfile={config}"]
    for path in programs:
        entry = f"{path} {str(path)[1:]} none bind,ro,create=file 0 0"
        argv.append(f"--define=lxc.mount.entry={entry}")
    return [*argv, "--define=lxc.net.0.type=none", "--", "env"]
