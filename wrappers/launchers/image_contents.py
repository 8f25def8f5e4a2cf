"""What is missing from an image: programs by name, and libraries of programs that are mounted into
it. One container is started for the check; if it fails, nothing is reported."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from steelyard.wrappers.launchers import image_build
from steelyard.wrappers.launchers.launcher_checks import run_quickly
from steelyard.wrappers.launchers.launcher_grammar import Launcher

MOST = 40  # most programs examined in a folder
# The script prints a line for each missing program or library. ldd is in the package of the C
# library.
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
    """What all runs with one image need: programs of the image, with the Debian packages that have
    them (or ""), and programs that are mounted into it."""

    commands: Mapping[str, str]
    programs: tuple[Path, ...]


def find_missing(launcher: Launcher, wanted: RequiredPrograms) -> str | None:
    """Return one sentence with the command that makes a complete image; None if nothing is missing
    or the check failed."""
    if launcher.has_our_programs:
        return None
    argv = enter_command(launcher, wanted.programs)
    done = run_quickly(
        *argv, "bash", "-c", LOOK, "look", *wanted.commands, "--", *map(str, wanted.programs)
    )
    if done.returncode != 0:
        return None  # other checks report why it does not start
    return describe_missing(
        launcher, wanted, [line.split("\t", 2) for line in done.stdout.splitlines()]
    )


def describe_missing(
    launcher: Launcher, wanted: RequiredPrograms, found: list[list[str]]
) -> str | None:
    """Return a sentence that lists what is missing, or None."""
    commands = [fields[1] for fields in found if fields[0] == "program"]
    libraries: dict[str, str] = {}
    versions: dict[str, str] = {}
    for _, program, detail in (fields for fields in found if fields[0] == "library"):
        if name := OLD.search(detail):
            versions.setdefault(name[1], Path(program).name)
        elif name := MISSING.search(detail):
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
    make = image_build.format_command(f"{launcher.kind}:{launcher.name}", *dict.fromkeys(packages))
    return f"{launcher.text}: the image lacks {'; '.join(parts)}: say `{make} --force`, or another name"


def group_by_program(names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each program with the names that it misses, separated by commas."""
    for program in dict.fromkeys(names.values()):
        yield program, ", ".join(name for name, whose in names.items() if whose == program)


def find_package(library: str) -> str | None:
    """Return the Debian package that has the library on this machine, or None."""
    done = run_quickly("dpkg-query", "--search", f"*/{library}")
    return done.stdout.partition(":")[0] if done.returncode == 0 else None


def list_linked(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Return the files that are linked to libraries, including those in folders."""
    found: dict[Path, None] = {}
    for path in paths:
        inside = sorted(path.iterdir())[:MOST] if path.is_dir() else [path]
        found |= dict.fromkeys(one for one in inside if is_linked(one))
    return tuple(found)


def is_linked(path: Path) -> bool:
    """Return whether the file is an executable ELF program or library."""
    if not path.is_file() or not os.access(path, os.X_OK | os.R_OK):
        return False
    with path.open("rb") as stream:
        return stream.read(4) == b"\x7fELF"


def enter_command(launcher: Launcher, programs: Iterable[Path]) -> list[str]:
    """Return the command line up to the program to execute inside; `programs` are mounted at their
    own paths."""
    if launcher.kind in image_build.ENGINES:
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
    config = image_build.lxc_folder() / launcher.name / "config"
    argv = ["setsid", "lxc-execute", f"--name=steelyard-look-{os.getpid()}", f"--rcfile={config}"]
    for path in programs:
        entry = f"{path} {str(path)[1:]} none bind,ro,create=file 0 0"
        argv.append(f"--define=lxc.mount.entry={entry}")
    return [*argv, "--define=lxc.net.0.type=none", "--", "env"]
