"""The study file, checked strictly: factors x benchmarks x repeats (reference: docs/study.md)."""

from __future__ import annotations

import functools
import hashlib
import math
import re
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path

from steelyard.analysis.base.level_names import NODE, Texts, format_levels
from steelyard.analysis.sources import study_files, study_sessions
from steelyard.analysis.sources.study_files import Scaling
from steelyard.analysis.stats.number_format import parse_percent
from steelyard.jobscripts.registry import Benchmark
from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.study import benchmarks as study_benchmarks
from steelyard.wrappers.study import factors as study_factors
from steelyard.wrappers.study import folder as study_folder
from steelyard.wrappers.study import job_settings
from steelyard.wrappers.study.benchmarks import Variant
from steelyard.wrappers.study.factors import Level, read_scaling
from steelyard.wrappers.study.folder import PLAN, derive_folder
from steelyard.wrappers.study.job_settings import Job
from steelyard.wrappers.study.levels import EACH, Drawn
from steelyard.wrappers.study.table_reader import Table

SECTIONS = ("study", "job", "factors", "baseline", "place", "benchmark")
STUDY_KEYS = (
    *("name", "repeat", "blocks", "seed", "order", "stop", "equivalent"),
    *("tolerate", "max_core_hours", "paper", "scaling"),
)
NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
NAME_WORDS = "letters, digits, '_', '.' and '-', at most 64, the first a letter or digit"
MAX_RUNS = 1_000_000
# Order inside a block: by the seed, or condition after condition with its repeats in a row.
ORDERS = ("random", "as_written")


@dataclass(frozen=True)
class Study:
    """A checked study; `toml` has the bytes of its file."""

    name: str
    repeat: int
    blocks: int
    seed: int
    job: Job
    factors: dict[str, tuple[Level, ...]]
    baseline: dict[str, Level]  # without the factors of [baseline] within
    place: dict[str, dict[str, tuple[str, ...]]]  # level of node_type: scheduler: options
    variants: tuple[Variant, ...]
    toml: bytes
    file: Path
    stop: Stop | None = None
    equivalent: float | None = None  # smaller overheads count as none
    tolerate: float | None = None  # how much worse a figure may be (summary.tolerated_levels)
    max_core_hours: float | None = None
    scaling: Scaling | None = None
    drawn: Drawn = field(default_factory=dict)  # drawn factors that are files or each node
    order: str = ORDERS[0]  # inside a block
    session: str | None = None  # its name, for a session of a repeated study

    @property
    def toml_sha256(self) -> str:
        """SHA-256 of the file's bytes."""
        return hashlib.sha256(self.toml).hexdigest()

    @functools.cached_property
    def level_texts(self) -> Texts:
        """The text of each level in labels, by factor and level."""
        return format_levels(self.factors, self.toml.decode("utf-8"))

    def benchmarks(self) -> dict[str, Benchmark]:
        """The benchmarks in use, by name."""
        return {variant.benchmark.name: variant.benchmark for variant in self.variants}


def load_study(file: Path, recorded_levels: Drawn | None = None) -> Study:
    """Read and check a study file. Raises UsageError, in one line, for the first fault.

    `drawn`: the plan's entries for factors that are files or each node (levels.read_levels)."""
    if file.is_dir():
        inside = file / "study.toml"
        hint = f": give {inside}" if inside.is_file() else "; give NAME.toml (docs/study.md)"
        raise UsageError(f"{file} is a folder, and no study file{hint}", part=str(file))
    try:
        toml = file.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{file}: cannot be read: {error.strerror}; expected a study file (docs/study.md)",
            part=str(file),
        ) from error
    return parse_study(toml, file, recorded_levels)


def parse_study(toml: bytes, file: Path, recorded_levels: Drawn | None = None) -> Study:
    """Check the bytes of a study file; `file` is its name in messages."""
    try:
        data = tomllib.loads(study_folder.decode_text(toml, file))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file}: no TOML: {format_error(error)}", part=str(file)) from error
    top = Table(file, data)
    top.only(SECTIONS)
    return build_study(top, toml, dict(recorded_levels or {}))


def build_study(top: Table, toml: bytes, recorded_levels: Drawn) -> Study:
    """Check a parsed file section by section and return the study."""
    head = top.table("study")
    head.only(STUDY_KEYS)
    repeat = head.count("repeat", 10, most=999)
    seed = head.count("seed", 1, least=0, most=2**63 - 1)
    factors = study_factors.read_factors(top, seed, recorded_levels)
    job = job_settings.read_job(top, factors)
    baseline = study_factors.read_baseline(top, factors)
    variants = study_benchmarks.read_variants(top, factors, job)
    benchmarks = {variant.benchmark.name: variant.benchmark for variant in variants}.values()
    clients: tuple[Level, ...] = ()
    if study_factors.has_meaning("clients", benchmarks):
        clients = factors.get("clients", ())
    if NODE in factors:
        study_factors.check_node(top, job, factors)
    if clients:
        study_factors.check_clients(top, job, factors)
    study = Study(
        name=read_name(head, top.file),
        repeat=repeat,
        blocks=read_blocks(head, repeat),
        seed=seed,
        job=job,
        factors=factors,
        baseline=baseline,
        place=study_factors.read_place(top, factors),
        variants=variants,
        toml=toml,
        file=top.file,
        stop=read_stop(head, repeat),
        equivalent=read_share(
            head, "equivalent", 'the largest overhead that does not matter, such as "2%"'
        ),
        tolerate=read_tolerate(head, {name: factors[name] for name in baseline}),
        max_core_hours=read_max_core_hours(head),
        scaling=read_scaling(head, factors),
        drawn={name: recorded_levels[name] for name in factors if name in recorded_levels},
        order=head.word("order", "|".join(ORDERS), " or ".join(ORDERS)) or ORDERS[0],
    )
    check_size(study, head)
    check_cold(top, study)
    check_paper(head, variants)
    most_nodes = max(int(level) for level in (*clients, *factors.get("nodes", ()), job.nodes))
    study_factors.check_span(top, factors, benchmarks, most_nodes)
    return study


def check_cold(top: Table, study: Study) -> None:
    """Check that cold caches come without [job] warm_up and retries, which would fill them
    again."""
    cold = next((level for level in study.factors.get("cache", ()) if level != "warm"), None)
    for key in ("warm_up", "retries"):
        if cold is not None and getattr(study.job, key):
            top.table("job").fail(
                key,
                f'cache = "{cold}" drops the caches once, before the job begins, and {key} fills '
                f"them again: leave out {key}, or the cold levels",
            )


def check_paper(head: Table, variants: tuple[Variant, ...]) -> None:
    """Check that a study with [study] paper names the programs of benchmarks that have ours beside
    the field's."""
    paper = head.word("paper", NAME, "the name of what is redone, such as ruiz2015")
    for variant in variants if paper else ():
        keys, values = variant.benchmark.program_choice, variant.values()
        if keys and not any(values[key] for key in keys):
            head.fail(
                "paper",
                f"{variant.benchmark.name} would run our programs, whose figures are not "
                f"comparable with those of {paper}: in [[benchmark]] give the field's own with "
                f'{keys[0]} = "/path", or say {keys[1]} = "steelyard" '
                f"(docs/{variant.benchmark.name}.md)",
            )


def read_name(head: Table, file: Path) -> str:
    """Return [study] name, or the file's stem."""
    name = head.word("name", NAME, NAME_WORDS)
    if name is None and not re.fullmatch(NAME, file.stem):
        head.fail("name", f"missing, and the file's name is none: allowed is {NAME_WORDS}")
    return name or file.stem


def read_blocks(head: Table, repeat: int) -> int:
    """Return [study] blocks, at most `repeat`: every block contains every condition."""
    blocks = head.count("blocks", min(repeat, 5))
    if blocks > repeat:
        head.wrong(
            "blocks", blocks, f"at most repeat = {repeat}: every block holds every condition"
        )
    return blocks


def read_max_core_hours(head: Table) -> float | None:
    """Return [study] max_core_hours; `submit` rejects studies that need more."""
    value = head.data.get("max_core_hours")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        head.wrong("max_core_hours", value, "a number above 0")
    return float(value)


def check_size(study: Study, head: Table) -> None:
    """Raise UsageError for a size that no scheduler accepts."""
    conditions = sum(
        math.prod(len(study.factors[name]) for name in variant.factors)
        for variant in study.variants
    )
    repeat = study.repeat if study.stop is None else study.stop.max_repeat
    if conditions * repeat > MAX_RUNS:
        head.fail("repeat", f"{conditions} conditions x {repeat} are over {MAX_RUNS} runs")


def format_error(error: Exception) -> str:
    """The message of an error without line breaks."""
    return " ".join(str(error).split())


def load_with_folder(
    toml: Path, directory: Path | None = None, session: str | None = None
) -> tuple[Study, Path]:
    """Return the checked study and its folder or its session's. Files and nodes that its plan has
    drawn stay drawn, and a new session has the files of the last one."""
    if not toml.is_file():
        return load_study(toml), toml  # raises an error that says what is wrong
    folder = derive_folder(toml, directory, session)
    study = load_study(toml, read_drawn_levels(toml, folder))
    if study_sessions.is_session(folder):
        study = replace(study, session=folder.name.removesuffix(study_folder.SUFFIX))
    return study, folder


def read_drawn_levels(toml: Path, folder: Path) -> Drawn:
    """Return the plan's drawn levels. The plan is large and most studies draw nothing, so it is
    only read where the study file may draw."""
    text = toml.read_bytes()
    if b"files" not in text and EACH.encode() not in text:
        return {}
    is_new = study_sessions.is_session(folder) and not (folder / PLAN).is_file()
    if is_new:
        folder = next(
            (one.folder for one in study_sessions.list_sessions(folder.parent)[-1:]), folder
        )
    if not (folder / PLAN).is_file():
        return {}
    found = study_files.read_plan(folder).study.get("drawn")
    if not isinstance(found, dict):
        return {}
    # A new session has the nodes that are up when it begins.
    return {name: one for name, one in found.items() if not is_new or "nodes" not in one}


KEYS = ("half_width", "max_repeat")
MOST_REPEATS = 999  # a run id has three digits for the repeat


@dataclass(frozen=True)
class Stop:
    """The rule that ends a study's repeats."""

    half_width: float  # of the confidence interval, as a share of the mean
    max_repeat: int


def read_stop(head: Table, repeat: int) -> Stop | None:
    """Read and check `stop`; None when absent."""
    if "stop" not in head.data:
        return None
    table = head.table("stop")
    table.only(KEYS)
    text = table.data.get("half_width")
    half_width = parse_percent(text)
    if half_width is None:
        table.wrong("half_width", text, 'a share of the mean above zero, such as "1%"')
    most = table.count("max_repeat", 100, most=MOST_REPEATS)
    if most < repeat:
        table.wrong("max_repeat", most, f"at least repeat = {repeat}, with which it begins")
    return Stop(half_width, most)


def read_share(head: Table, key: str, allowed: str) -> float | None:
    """Return a percentage of [study] as a share; None when absent."""
    if key not in head.data:
        return None
    share = parse_percent(head.data[key])
    if share is None:
        head.wrong(key, head.data[key], allowed)
    return share


def read_tolerate(head: Table, factors: dict[str, tuple[Level, ...]]) -> float | None:
    """Read and check `tolerate`, which needs a factor whose levels are numbers."""
    share = read_share(head, "tolerate", 'how much worse a figure may be, such as "10%"')
    if share is not None:
        # Imported here because it takes a tenth of a second, and few studies need it.
        from steelyard.analysis.summary.tolerated_levels import find_numeric_axes

        if not find_numeric_axes(factors):
            head.fail(
                "tolerate",
                "no factor has two levels that are numbers, or network conditions that differ in one "
                'number, such as network = ["none", "delay=50ms"]: add one, or leave out '
                "tolerate; factors of [baseline] within do not count",
            )
    return share
