"""The study file, checked strictly: factors x benchmarks x repeats (reference: docs/study.md)."""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from steelyard.jobscripts.registry import Benchmark
from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.study import benchmarks as study_benchmarks
from steelyard.wrappers.study import factors as study_factors
from steelyard.wrappers.study import job as study_job
from steelyard.wrappers.study.benchmarks import Variant
from steelyard.wrappers.study.factors import Level
from steelyard.wrappers.study.job import Job
from steelyard.wrappers.study.reader import Table
from steelyard.wrappers.study.stop import Stop, read_stop

SECTIONS = ("study", "job", "factors", "baseline", "place", "benchmark")
STUDY_KEYS = ("name", "repeat", "blocks", "seed", "stop")
NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
MAX_RUNS = 1_000_000


@dataclass(frozen=True)
class Study:
    """A checked study; `toml` is the file to the byte."""

    name: str
    repeat: int
    blocks: int
    seed: int
    job: Job
    factors: dict[str, tuple[Level, ...]]
    baseline: dict[str, Level]
    place: dict[str, dict[str, tuple[str, ...]]]  # level of node_type: scheduler: options
    variants: tuple[Variant, ...]
    toml: bytes
    file: Path
    stop: Stop | None = None

    @property
    def toml_sha256(self) -> str:
        """Of the file's bytes."""
        return hashlib.sha256(self.toml).hexdigest()

    def benchmarks(self) -> dict[str, Benchmark]:
        """The benchmarks in use, by name."""
        return {variant.benchmark.name: variant.benchmark for variant in self.variants}


def load(file: Path) -> Study:
    """Read and check a study file; UsageError in one line for whatever is wrong with it."""
    try:
        toml = file.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{file}: cannot be read: {error.strerror}; expected a study file (docs/study.md)",
            part=str(file),
        ) from error
    return parse(toml, file)


def parse(toml: bytes, file: Path) -> Study:
    """Check the bytes of a study file; `file` is its name in messages."""
    try:
        data = tomllib.loads(toml.decode("utf-8"))
    except ValueError as error:  # no TOML, or no UTF-8
        raise UsageError(f"{file}: no TOML: {one_line(error)}", part=str(file)) from error
    top = Table(file, data)
    top.only(SECTIONS)
    return build(top, toml)


def build(top: Table, toml: bytes) -> Study:
    """The study of a parsed file, section by section."""
    head = top.table("study")
    head.only(STUDY_KEYS)
    repeat = head.count("repeat", 10, most=999)
    factors = study_factors.read_factors(top)
    variants = study_benchmarks.read_variants(top, factors)
    study = Study(
        name=name_of(head, top.file),
        repeat=repeat,
        blocks=blocks_of(head, repeat),
        seed=head.count("seed", 1, least=0, most=2**63 - 1),
        job=study_job.read_job(top, "clients" in factors),
        factors=factors,
        baseline=study_factors.read_baseline(top, factors),
        place=study_factors.read_place(top, factors),
        variants=variants,
        toml=toml,
        file=top.file,
        stop=read_stop(head, repeat),
    )
    check_size(study, head)
    most_clients = max(int(level) for level in factors.get("clients", (1,)))
    study_factors.check_span(
        top, factors, study.benchmarks().values(), max(study.job.nodes, most_clients)
    )
    return study


def name_of(head: Table, file: Path) -> str:
    """[study] name, or the file's own name."""
    allowed = "letters, digits, '_', '.' and '-', at most 64, the first a letter or digit"
    name = head.word("name", NAME, allowed)
    if name is None and not re.fullmatch(NAME, file.stem):
        head.fail("name", f"missing, and the file's name is none: allowed is {allowed}")
    return name or file.stem


def blocks_of(head: Table, repeat: int) -> int:
    """[study] blocks: every block holds every condition, so there are at most `repeat`."""
    blocks = head.count("blocks", min(repeat, 5))
    if blocks > repeat:
        head.wrong(
            "blocks", blocks, f"at most repeat = {repeat}: every block holds every condition"
        )
    return blocks


def check_size(study: Study, head: Table) -> None:
    """Refuse what no scheduler takes."""
    conditions = len(study.variants)
    for levels in study.factors.values():
        conditions *= len(levels)
    repeat = study.repeat if study.stop is None else study.stop.max_repeat
    if conditions * repeat > MAX_RUNS:
        head.fail("repeat", f"{conditions} conditions x {repeat} are over {MAX_RUNS} runs")


def one_line(error: Exception) -> str:
    """The message of an error without line breaks."""
    return " ".join(str(error).split())
