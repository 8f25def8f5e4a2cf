"""The study folder (docs/formats.md part 6): where everything of a study lies, and how it is found.

A study is named by its .toml file, by its folder, or by its name in the current folder.
"""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path

from steelyard.analysis.sources import study_files
from steelyard.wrappers.base.errors import UsageError, did_you_mean

SUFFIX = ".study"
PLAN = study_files.PLAN_FILE


@dataclass(frozen=True)
class StudyDir:
    """Paths inside a study's folder; nothing is made or read here."""

    path: Path

    @property
    def toml(self) -> Path:
        """The study as last submitted, to the byte."""
        return self.path / "study.toml"

    @property
    def plan(self) -> Path:
        """All runs."""
        return self.path / PLAN

    @property
    def submissions(self) -> Path:
        """One line per submission."""
        return self.path / study_files.SUBMISSIONS_FILE

    @property
    def cancelled(self) -> Path:
        """What `steelyard cancel` has stopped, a line each time and submission."""
        return self.path / "cancelled.jsonl"

    def library(self, text: str) -> Path:
        """The shell functions of the job templates, frozen with the runs that were submitted with them.

        Named by their text: another version of Steelyard that continues the study adds its own.
        """
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return self.path / "lib" / f"steelyard-{digest}.sh"

    @property
    def lock(self) -> Path:
        """Locked by whoever submits, and by a local scheduler as long as it runs."""
        return self.path / study_files.LOCK_FILE

    def script(self, submission_id: str) -> Path:
        """The batch script of a submission."""
        return self.path / "submissions" / f"{submission_id}.sh"

    def run_list(self, submission_id: str) -> Path:
        """The run ids of a submission, one a line."""
        return self.path / "submissions" / f"{submission_id}.runs"

    def run(self, run_id: str) -> Path:
        """A run's folder."""
        return self.path / "runs" / run_id


def resolve(text: str | None) -> Path:
    """The folder of an already submitted study; None: the only one here. UsageError if none."""
    if text is None:
        return only_study(Path())
    path = Path(text)
    if (path / PLAN).is_file():
        return path
    if path.is_file():
        return checked(folder_of(path), text)
    beside = path.with_name(path.name + SUFFIX)
    if beside.is_dir():
        return checked(beside, text)
    toml = path.with_name(path.name + ".toml")
    if toml.is_file():
        return checked(folder_of(toml), text)
    if path.is_dir():
        return checked(path, text)  # says what it lacks
    known = [study.name.removesuffix(SUFFIX) for study in studies_in(path.parent)]
    here = f"studies in {path.parent}: {', '.join(known)}" if known else "no studies are there"
    raise UsageError(
        f"{text}: no such study{did_you_mean(path.name, known)}; {here}; "
        "give a study file, its folder or its name (jobs of a study whose folder was deleted are "
        "called NAME.bBLOCK-…: squeue --me and scancel, or qstat and qdel)",
        part=text,
    )


def folder_of(toml: Path, directory: Path | None = None) -> Path:
    """Where a study file's folder is: NAME.study beside it, or in `directory`.

    The file that was kept with a submitted study stands in its folder.
    """
    if directory is not None and directory.name.endswith(SUFFIX):
        return directory
    own = StudyDir(toml.parent)
    if directory is None and toml.name == own.toml.name and own.plan.is_file():
        return toml.parent
    return (directory or toml.parent) / (study_name(toml) + SUFFIX)


def study_name(toml: Path) -> str:
    """[study] name of a study file; the file's own name if it has none."""
    try:
        study = tomllib.loads(as_text(toml.read_bytes(), toml)).get("study")
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{toml}: no study file: {error}", part=str(toml)) from error
    name = study.get("name") if isinstance(study, dict) else None
    return name if isinstance(name, str) and name else toml.stem


def as_text(content: bytes, file: Path) -> str:
    """A study file's text; UsageError names the line of what is no UTF-8."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"{file} line {line}: the byte 0x{content[error.start]:02x} is no UTF-8: save the file "
            "as UTF-8",
            part=str(file),
        ) from error


def checked(path: Path, text: str) -> Path:
    """`path` if it is a submitted study's folder, else UsageError."""
    if (path / PLAN).is_file():
        return path
    raise UsageError(
        f"{text}: {path} has no {PLAN}: not a study's folder, or `steelyard submit` was not run",
        part=text,
    )


def studies_in(folder: Path) -> list[Path]:
    """The study folders directly in a folder, by name."""
    if not folder.is_dir():
        return []
    return sorted(entry for entry in folder.iterdir() if (entry / PLAN).is_file())


def only_study(folder: Path) -> Path:
    """The folder itself when it is a study's, or the only study in it; UsageError otherwise."""
    if (folder / PLAN).is_file():
        return folder
    studies = studies_in(folder)
    if len(studies) == 1:
        return studies[0]
    if not studies:
        raise UsageError("no study in the current folder: name one, or `steelyard submit` one")
    names = ", ".join(study.name for study in studies)
    raise UsageError(f"which study? {names}")
