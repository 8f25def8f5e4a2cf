"""The interface to `steelyard-node netem` and `cache`, which parse, apply and undo conditions."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.wrappers.base import programs, signals
from steelyard.wrappers.base.errors import ConditionError, MissingError, SteelyardError, UsageError
from steelyard.wrappers.netem import kernel_support

RUN_DIR = Path("/run/steelyard")
POLICY = Path("/etc/steelyard/netem.conf")
NONE = "none"
# Variables with a job's condition: sbatch --netem (spank(8)), qsub -v STEELYARD_NETEM.
OF_JOB = ("SLURM_SPANK__SLURM_SPANK_OPTION_steelyard_netem", "STEELYARD_NETEM")
COLD = ("cache", "--cold", "--no-policy")
CACHES = ("warm", "cold")
LIMITED = re.compile(r"cold:cvmfs=([1-9][0-9]{0,8})")  # MB that CVMFS' cache may use
TIMEOUT_S = 120  # apply and undo each send a few seconds of pings
KINDS: dict[int, type[SteelyardError]] = {2: UsageError, 3: MissingError, 4: ConditionError}


@dataclass(frozen=True)
class Specification:
    """A checked specification; `spec` is in SI units (docs/formats.md part 9)."""

    text: str  # as written
    requested: str  # canonical
    spec: dict[str, object]


@dataclass(frozen=True)
class Conditions:
    """The conditions that a run requests of this machine."""

    network: str = NONE
    cache: str = "warm"
    peer: str | None = None  # an address to measure round-trip times to

    @property
    def shapes(self) -> bool:
        """Whether the network is shaped."""
        return self.network != NONE

    @property
    def needs_root(self) -> bool:
        """Whether an ordinary user cannot apply the conditions here."""
        return self.shapes or self.is_cold

    @property
    def is_cold(self) -> bool:
        """Whether caches are dropped before the run."""
        return self.cache != CACHES[0]

    @property
    def cold(self) -> tuple[str, ...]:
        """The arguments of steelyard-node that drop the caches."""
        limit = LIMITED.fullmatch(self.cache)
        return (*COLD, f"--cvmfs-mb={limit[1]}") if limit else COLD

    def format_options(self) -> str:
        """Return the conditions as options, for messages."""
        parts = [f"--netem={self.network}"] if self.shapes else []
        return " ".join([*parts, *([f"--cache={self.cache}"] if self.is_cold else [])])


NOTHING = Conditions()


def read_job_condition() -> str:
    """Return the condition of the batch job in which this process runs; `none` without one."""
    return next((os.environ[name] for name in OF_JOB if os.environ.get(name)), NONE)


def is_cache_level(level: object) -> bool:
    """Return whether it is a level of the factor `cache`."""
    return level in CACHES or (isinstance(level, str) and LIMITED.fullmatch(level) is not None)


def make_conditions(condition: Mapping[str, object]) -> Conditions:
    """Return the conditions that the levels of `network` and `cache` request."""
    return Conditions(str(condition.get("network", NONE)), str(condition.get("cache", CACHES[0])))


def choose_run_dir(wanted: Path | None = None) -> Path:
    """Return the folder of states: the given one, else $STEELYARD_RUN_DIR, else /run/steelyard."""
    return (wanted or Path(os.environ.get("STEELYARD_RUN_DIR") or RUN_DIR)).absolute()


def node_name() -> str:
    """Return this node's name as the sampler has it: the host's name up to its first dot."""
    return socket.gethostname().partition(".")[0] or "localhost"


def run_node_program(*arguments: str) -> str:
    """Return stdout of a steelyard-node command. Raises the error that its exit code and last line
    describe."""
    program = str(programs.find_node_program())
    try:
        done = programs.run_quietly([program, *arguments], TIMEOUT_S)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the user's text
        raise UsageError(f"{program} {arguments[0]}: cannot be asked: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise ConditionError(f"{program} {arguments[0]}: no answer in {TIMEOUT_S} s") from error
    if done.returncode == 0:
        return done.stdout
    raise format_error(program, arguments, done.returncode, done.stderr)


def format_error(program: str, arguments: Sequence[str], code: int, errors: str) -> SteelyardError:
    """Return the error of a failed command, with steelyard-node's message."""
    if f"unknown command '{arguments[0]}'" in errors:
        return MissingError(
            f"{program} is too old, it knows no '{arguments[0]}': {programs.remedy(programs.PROGRAM)}"
        )
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    line = lines[-1] if lines else f"{' '.join(arguments[:2])} ended with {code}, and no word why"
    return KINDS.get(code, ConditionError)(
        re.sub(r"^(steelyard-node[a-z ]*|netem): (netem: )?", "", line)
    )


def parse_specification(text: str) -> Specification:
    """Check a specification. Raises UsageError, which names the invalid field and what is
    allowed."""
    found = json.loads(run_node_program("netem", "parse", "--", text))
    return Specification(text, str(found["requested"]), dict(found["spec"]))


def read_sites(name: str, folder: Path | None = None) -> dict[str, Any]:
    """Return what a sites file requires of this node (docs/formats.md part 9, `sites`). Raises
    ConditionError if the file is missing or invalid."""
    where = [] if folder is None else [f"--folder={folder}"]
    found: dict[str, Any] = json.loads(run_node_program("netem", "sites", *where, "--", name))
    return found


def describe_sites(found: Mapping[str, Any]) -> list[str]:
    """Describe the sites, one line for each link."""
    site = found["here"]
    return [f"{site} -> {one['to_site']}: {one['requested']}" for one in found["links"]] or [
        f"no link begins at {site}"
    ]


def resolve_address(host: str) -> str:
    """Return the address of a host name. Raises UsageError if it has none."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"--peer {host}: no address is known of it: {error}") from error
    return str(found[0][4][0])


def require_root(purpose: str) -> None:
    """Raise ConditionError, which says what to do, for an ordinary user."""
    if os.geteuid() != 0:
        raise ConditionError(
            f"{purpose}: needs root on this machine; on a cluster with Steelyard on its nodes any user "
            "asks for it: sbatch --netem=SPEC --cache=cold, or qsub -v "
            "STEELYARD_NETEM=SPEC,STEELYARD_CACHE=cold (what is allowed there: docs/netem.md)"
        )


def check_on_this_machine(conditions: Conditions) -> None:
    """Raise ConditionError for what this user or kernel cannot apply, before anything runs."""
    if conditions.needs_root:
        require_root(conditions.format_options())
    if conditions.shapes:
        for module in kernel_support.list_required_modules(
            parse_specification(conditions.network).spec
        ):
            found = kernel_support.try_module(module)
            if found.there is False:
                raise ConditionError(f"--netem={conditions.network}: {found.message}")
        lacking = find_missing_sites(conditions.network)
        if lacking is not None:
            raise ConditionError(f"--netem={conditions.network}: {lacking}")


def sites_name(network: str) -> str | None:
    """Return the name of the sites that a specification refers to, or None."""
    name = parse_specification(network).spec.get("sites")
    return None if name is None else str(name)


def find_missing_sites(network: str) -> str | None:
    """Return why the requested sites file cannot be used here; None if it can, or none is
    requested."""
    name = sites_name(network)
    try:
        if name is not None:
            read_sites(name)
    except ConditionError as error:
        return str(error)
    return None


def apply_condition(
    conditions: Conditions, folder: Path, job_id: str, watch: int | None
) -> dict[str, object]:
    """Shape the network without a check of the policy; return the document (docs/formats.md part 9)
    so far."""
    watched = None if watch is None else str(watch)
    output = run_node_program(*apply_command(conditions, folder, job_id, watched))
    document: dict[str, object] = json.loads(output)
    return document


def apply_command(
    conditions: Conditions, folder: Path, job_id: str, watch: str | None
) -> tuple[str, ...]:
    """Return the arguments of steelyard-node that apply the network; `watch` is text, as in a shell
    it is $$."""
    arguments = [f"--run-dir={folder}", f"--node={node_name()}", f"--job-id={job_id}"]
    arguments += [f"--uid={os.getuid()}", "--no-policy"]
    arguments += [] if watch is None else [f"--watch={watch}"]
    arguments += [] if conditions.peer is None else [f"--peer={conditions.peer}"]
    return ("netem", "apply", *arguments, "--", conditions.network)


def format_shell_commands(conditions: Conditions, folder: Path, job_id: str) -> list[str]:
    """Return the shell commands that do what apply_conditions does before its body."""
    program = str(programs.find_node_program())
    lines = [shlex.join([program, *conditions.cold])] if conditions.is_cold else []
    if conditions.shapes:
        arguments = apply_command(conditions, folder, job_id, "$$")
        lines.append(shlex.join([program, *arguments]).replace("'--watch=$$'", "--watch=$$"))
    return lines


def finish_condition(folder: Path, job_id: str, by: str) -> None:
    """Undo a job's condition if it is still applied; `by` is `undone_by` of the document."""
    name = [f"--run-dir={folder}", f"--node={node_name()}", f"--job-id={job_id}"]
    run_node_program("netem", "finish", *name, f"--by={by}")


def list_states(folder: Path) -> list[dict[str, object]]:
    """Return every state on this node; `stale` marks states whose owner has ended."""
    found: list[dict[str, object]] = json.loads(
        run_node_program("netem", "show", f"--run-dir={folder}", "--json")
    )
    return found


def sampler_options(
    conditions: Conditions, folder: Path, cache: Mapping[str, object] | None = None
) -> list[str]:
    """Return the sampler's options for the conditions, which put them into its record."""
    options = [f"--tag=cache={conditions.cache}"] if conditions.is_cold else []
    options += [] if cache is None else [f"--cache={json.dumps(cache)}"]
    if conditions.shapes:
        options += [f"--run-dir={folder}", f"--node={node_name()}"]
    return options


def drop_caches(arguments: Sequence[str]) -> dict[str, object]:
    """Drop page cache, dentries and inodes, and wipe CVMFS' cache; return `cache` of the record."""
    done = json.loads(run_node_program(*arguments))
    return {key: done.get(key) for key in ("requested", "done", "refused")}


@contextmanager
def apply_conditions(conditions: Conditions, folder: Path, job_id: str) -> Iterator[list[str]]:
    """Apply the conditions while the body runs; yield options for its sampler. A SteelyardError
    before the body means that nothing has changed. If this process is killed, the sampler, the
    node's next job or `steelyard netem clear` undoes them."""
    cache = drop_caches(conditions.cold) if conditions.is_cold else None
    options = sampler_options(conditions, folder, cache)
    if not conditions.shapes:
        yield options
        return
    with signals.ending_on_sigterm():
        try:
            with signals.uninterrupted():
                apply_condition(conditions, folder, job_id, os.getpid())
            yield options
        finally:
            with signals.uninterrupted():
                finish_condition(folder, job_id, "job")
