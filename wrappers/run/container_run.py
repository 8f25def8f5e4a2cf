"""`steelyard run --in LAUNCHER`: the command as a separate run in a container.

The job scripts' library executes the run, as in a study: the container is started before the
measured time, and `containers=N` are N clients that start together. Inside, steelyard-time measures
the command: it starts and waits for it as steelyard-node does without a container."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steelyard.analysis.sources import study_files
from steelyard.facts.quantities import METRICS
from steelyard.jobscripts import registry, runscript
from steelyard.jobscripts.parameters import Value
from steelyard.wrappers.base import leftovers, programs
from steelyard.wrappers.base.errors import MissingError, UsageError
from steelyard.wrappers.launchers import launcher_grammar
from steelyard.wrappers.launchers.launcher_grammar import Launcher

RUN_ID = "run"
ATTEMPT = "local.1"
TIMER = "steelyard-time"
SHOWN = tuple(total for total in METRICS.values() if total.run_name)
CPU_PARTS = {"user": "user_s", "system": "system_s"}
# What a client's steelyard-time writes, by its name in `steelyard run`.
MEASURED = {
    one_total.run_name: one_total.name for one_total in SHOWN if one_total.whose == "REAPED"
} | CPU_PARTS
# Figures of the job's own processes. A container daemon's children are not among them.
OF_PROCESSES = (
    *(one_total.run_name for one_total in SHOWN if not one_total.is_of_node),
    *CPU_PARTS,
)
# Figures that only the record has: they include the container's start and end.
OF_WHOLE_RUN = tuple(one_total.run_name for one_total in SHOWN if one_total.whose != "REAPED")
NOT_OURS = "the container's processes are not the job's, but children of another daemon"


@dataclass(frozen=True)
class ContainerRun:
    """What the clients wrote: their common time (result.json), how each ended, what each measured,
    and the tags of each."""

    elapsed_s: float | None
    exit_codes: tuple[int | None, ...]
    measured: tuple[Mapping[str, float], ...]
    tags: tuple[Mapping[str, str], ...]

    @property
    def exit_code(self) -> int | None:
        """The first exit code that is not 0; None if that client wrote none."""
        return next((code for code in self.exit_codes if code != 0), 0)

    def values(self) -> dict[str, float | None]:
        """Return the slowest client's time, the sums of the other figures, and the slowest start. A
        figure is None if any client's is unknown."""
        sums = {name: self.combine_clients(key, sum) for name, key in MEASURED.items()}
        starts = slowest_start(self.tags)
        return {"elapsed": self.combine_clients("elapsed_s", max), "start": starts, **sums}

    def find_uncounted(self) -> str | None:
        """Return why the clients' CPU and bytes miss some processes, else None."""
        if any("left_behind" in one for one in self.measured):
            return "processes that the command left behind ran on when it ended"
        seen_s = sum(one.get("unwaited_cpu_s", 0.0) for one in self.measured)
        return f"nobody waited for processes that used {seen_s:.2f} s of CPU" if seen_s else None

    def combine_clients(self, key: str, join: Callable[[list[float]], float]) -> float | None:
        """Combine one figure of all clients; None unless all have it."""
        found = [one[key] for one in self.measured if key in one]
        return join(found) if found and len(found) == len(self.measured) else None


def slowest_start(tags: Sequence[Mapping[str, str]]) -> float | None:
    """Return the seconds until the last container was ready; None if any of them did not report
    it."""
    texts = [one.get("launcher_start_s", "") for one in tags]
    return max(map(float, texts)) if texts and all(map(is_number, texts)) else None


def is_number(text: str) -> bool:
    """Return whether the text is digits with at most one decimal point."""
    return text.replace(".", "", 1).isdecimal()


def measures_processes(tags: Sequence[Mapping[str, str]]) -> bool:
    """Return whether the tag `launcher_measured` of docs/launchers.md is `yes`."""
    return bool(tags) and tags[0].get("launcher_measured") == "yes"


def prepare(
    launcher: Launcher,
    command: Sequence[str],
    folder: Path,
    scratch: Path | None = None,
    condition: str = "none",
    stdin: Path | None = None,
) -> list[str]:
    """Write the run's script below `folder` and return the command line that executes it. Raises
    UsageError for ranks=across, MissingError without steelyard-time."""
    if launcher.across:
        raise UsageError(
            f"--in {launcher.text}: ranks=across puts one MPI program of a benchmark into all "
            "containers (see --benchmark): for a command leave it out"
        )
    directory = str(Path.cwd())
    timer = programs.find_program(TIMER)
    if timer is None:
        raise MissingError(
            f"{TIMER} is missing, which measures inside a container: {programs.remedy(TIMER)}"
        )
    timed = f'"$STEELYARD_TIME" "$SY_ATTEMPT_DIR/measured.$SY_CLIENT" {shlex.join(command)}'
    body = f"cd -- {shlex.quote(directory)} || return\n    {user_locale()}\n    {timed} <{shlex.quote(str(stdin or '/dev/null'))}"
    benchmark = registry.Benchmark(
        name="command",
        summary="a command",
        parameters={},
        results={},
        needs=(),
        template=f"sy_client() {{\n    {body}\n}}",
    )
    fixed = {
        "SY_ATTEMPT": ATTEMPT,
        "SY_LAUNCHER_FOLDER": directory,
        programs.variable(TIMER): str(timer),
        **({} if stdin is None else {"STEELYARD_INPUT": str(stdin)}),  # visible inside
        **({} if scratch is None else {"SY_SCRATCH_BASE": str(scratch)}),
    }
    return write_script(folder, benchmark, {}, launcher, fixed, condition)


def write_script(
    folder: Path,
    benchmark: registry.Benchmark,
    values: Mapping[str, Value],
    launcher: Launcher,
    environment: Mapping[str, str],
    condition: str,
) -> list[str]:
    """Write a run's script and its library below `folder`; return the command line that executes
    it."""
    script = folder / "runs" / RUN_ID / "run.sh"
    script.parent.mkdir(parents=True)
    (folder / "lib").mkdir()
    (folder / "lib" / "steelyard.sh").write_text(registry.library(), encoding="utf-8")
    own = {"SY_SCHEDULER": "local", "SY_LAUNCHER_LABEL": leftovers.container_label()}
    text = runscript.render(
        benchmark,
        values,
        study_dir=folder,
        run_id=RUN_ID,
        clients=launcher.clients_per_node,
        environment={
            **environment,
            **own,
            **launcher_grammar.launcher_variables(launcher, condition),
        },
    )
    script.write_text(text, encoding="utf-8")
    return ["/bin/bash", str(script)]


def user_locale() -> str:
    """Return shell commands that restore the user's locale, which the job scripts set to C."""
    names = [name for name in os.environ if name in ("LANG", "LANGUAGE") or name.startswith("LC_")]
    assignments = [f"{name}={shlex.quote(os.environ[name])}" for name in sorted(names)]
    return "; ".join(
        ["unset LC_ALL", *(["export " + " ".join(assignments)] if assignments else [])]
    )


def copy_output(folder: Path, destination: Path) -> None:
    """Append the clients' output to `out` and `err` in `destination`, in the order of the
    clients."""
    for stream in ("out", "err"):
        found = attempt_folder(folder).glob(f"{stream}.[0-9]*")
        with (destination / stream).open("ab") as target:
            for path in sorted(found, key=lambda path: int(path.suffix[1:])):
                target.write(path.read_bytes())


def read_run(attempt: Path) -> ContainerRun:
    """Read the clients' results from the attempt's folder. Raises MissingError if they are
    unreadable."""
    result = study_files.read_run_folder(RUN_ID, attempt)
    if result.problem is not None:
        raise MissingError(result.problem)
    codes = result.exit_codes or (None,)
    clients = range(len(codes))
    return ContainerRun(
        result.number("elapsed_s"),
        codes,
        tuple(only_numbers(read_values(attempt / f"measured.{client}")) for client in clients),
        tuple(read_values(attempt / f"tags.{client}") for client in clients),
    )


def attempt_folder(folder: Path) -> Path:
    """Return the attempt's folder of the run below `folder`."""
    return folder / "runs" / RUN_ID / ATTEMPT


def only_numbers(found: Mapping[str, str]) -> dict[str, float]:
    """Return the values that are numbers."""
    return {name: float(text) for name, text in found.items() if is_number(text)}


def read_values(path: Path) -> dict[str, str]:
    """Return the KEY=VALUE lines of a file; none if it does not exist."""
    if not path.exists():
        return {}
    text = path.read_text(encoding="utf-8", errors="replace")
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
