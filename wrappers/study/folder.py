"""The study folder (docs/formats.md part 6): the paths in it, how commands find it, and its lock.

A study is named by its .toml file, by its folder, or by its name in the current folder.
NAME@SESSION is one session of a repeated study; its folder is NAME.sessions/SESSION.study. One
process at a time submits a study or changes its plan."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from steelyard.analysis.base import locks
from steelyard.analysis.sources import study_files, study_sessions
from steelyard.analysis.sources.study_sessions import Session
from steelyard.jobscripts.plurals import counted
from steelyard.wrappers.base.errors import MissingError, UsageError, did_you_mean

SUFFIX, SESSIONS = study_sessions.SESSION_SUFFIX, study_sessions.SUFFIX
NAMED_SESSIONS = 5  # number of last sessions that an error lists
PLAN = study_files.PLAN_FILE


@dataclass(frozen=True)
class StudyDir:
    """Paths inside a study's folder. No method creates or reads a file."""

    path: Path

    @property
    def toml(self) -> Path:
        """Path of the study file as last submitted, byte by byte."""
        return self.path / "study.toml"

    @property
    def plan(self) -> Path:
        """Path of the plan with all runs."""
        return self.path / PLAN

    @property
    def submissions(self) -> Path:
        """Path of the file with one line per submission."""
        return self.path / study_files.SUBMISSIONS_FILE

    @property
    def cancelled(self) -> Path:
        """Path of the file with the runs that `steelyard cancel` stopped, one line per call and
        submission."""
        return self.path / "cancelled.jsonl"

    def library(self, text: str) -> Path:
        """Path of the shell functions of the job templates, frozen with the runs that use them.

        The text's hash is in the name: another version of Steelyard that continues the study adds
        its own."""
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return self.path / "lib" / f"steelyard-{digest}.sh"

    @property
    def lock(self) -> Path:
        """Path of the lock, held by each submit, and by a local scheduler as long as it runs."""
        return self.path / study_files.LOCK_FILE

    def script(self, submission_id: str) -> Path:
        """Path of a submission's batch script."""
        return self.path / "submissions" / f"{submission_id}.sh"

    def run_list(self, submission_id: str) -> Path:
        """Path of a submission's run list: one run id per line."""
        return self.path / "submissions" / f"{submission_id}.runs"

    def run(self, run_id: str) -> Path:
        """Path of a run's folder."""
        return self.path / "runs" / run_id


def resolve_study(text: str | None) -> Path:
    """Return the folder of a submitted study or session; for None, the only one in the current
    folder. If the study has only sessions, return the latest one, whose label is printed. Raises
    UsageError if no study is found."""
    folder = find_study(text)
    if not is_sessions(folder):
        return folder
    sessions = study_sessions.list_sessions(folder)
    latest = sessions[-1].folder
    print(
        f"{study_sessions.format_label(latest)}: the latest of {counted(len(sessions), 'session')}",
        file=sys.stderr,
    )
    return latest


def find_sessions(text: str | None) -> list[Session]:
    """Return all sessions of a study that has only sessions, or of a given NAME.sessions; else
    []."""
    folder = find_study(text)
    return study_sessions.list_sessions(folder) if is_sessions(folder) else []


def is_study(text: str) -> bool:
    """Return whether a submitted study or session has that name."""
    try:
        find_study(text)
    except UsageError:
        return False
    return True


def find_study(text: str | None) -> Path:
    """Return the folder of a submitted study or session, or NAME.sessions of a study with only
    sessions."""
    if text is None:
        return find_only_study(Path())
    path = Path(text)
    if (path / PLAN).is_file() or is_sessions(path):
        return path
    if path.is_file():
        return check_study(derive_folder(path), text)
    beside = path.with_name(path.name + SUFFIX)
    if beside.is_dir() or path.with_name(path.name + SESSIONS).is_dir():
        return check_study(beside, text)
    name, at, session = path.name.rpartition("@")
    if at and name:
        return session_folder(path.with_name(name), session, text)
    toml = path.with_name(path.name + ".toml")
    if toml.is_file():
        return check_study(derive_folder(toml), text)
    if path.is_dir():
        return check_study(path, text)  # raises an error that says what is missing
    known = list(dict.fromkeys(study.stem for study in list_studies(path.parent)))
    known_text = (
        f"studies in {path.parent}: {', '.join(known)}" if known else "no studies are there"
    )
    raise UsageError(
        f"{text}: no such study{did_you_mean(path.name, known)}; {known_text}; "
        "give a study file, its folder or its name (jobs of a study whose folder was deleted are "
        "called NAME.bBLOCK-…: squeue --me and scancel, or qstat and qdel)",
        part=text,
    )


def sessions_folder(study: Path) -> Path:
    """Return NAME.sessions of a study's file, folder or name, whether or not it exists."""
    name = study.name
    for suffix in (".toml", SUFFIX, SESSIONS):
        name = name.removesuffix(suffix)
    toml = study if study.is_file() else study.with_name(f"{name}.toml")
    named = study.with_name(name + SESSIONS)
    if named.is_dir() or not toml.is_file():
        return named
    return toml.with_name(study_name(toml) + SESSIONS)


def session_folder(study: Path, session: str, text: str) -> Path:
    """Return the folder of a study's session. Raises UsageError, which lists the last sessions."""
    folder = sessions_folder(study)
    own = folder / f"{session}{SUFFIX}"
    if (own / PLAN).is_file():
        return own
    names = [one.name for one in study_sessions.list_sessions(folder)]
    if not names:
        raise UsageError(
            f"{text}: there are no sessions in {folder}; `steelyard submit STUDY.toml --session` makes one",
            part=text,
        )
    raise UsageError(
        f"{text}: no such session{did_you_mean(session, names)}; the last of {len(names)}: "
        f"{', '.join(names[-NAMED_SESSIONS:])} (all: `steelyard status {study}`)",
        part=text,
    )


def is_sessions(folder: Path) -> bool:
    """Return whether a folder is NAME.sessions with at least one submitted session."""
    return folder.absolute().name.endswith(SESSIONS) and bool(
        study_sessions.list_submitted_names(folder)
    )


def derive_folder(toml: Path, directory: Path | None = None, session: str | None = None) -> Path:
    """Return the folder of a study file: NAME.study next to it, or in `directory`; of a session
    NAME.sessions/SESSION.study.

    The study file that a submitted study keeps is in the study's own folder."""
    own = StudyDir(toml.parent)
    is_unchanged = toml.name == own.toml.name and own.plan.is_file()
    if session is not None:
        if is_unchanged or (directory is not None and directory.name.endswith(SUFFIX)):
            raise UsageError(
                f"--session makes NAME{SESSIONS}/SESSION{SUFFIX} beside the study file, or in --dir: "
                f"expected neither a --dir that ends in {SUFFIX} nor the {own.toml.name} of such a "
                "folder; to continue a session, leave --session out",
                part=str(directory if directory is not None else toml),
            )
        sessions = (directory or toml.parent) / (study_name(toml) + SESSIONS)
        return sessions / f"{session}{SUFFIX}"
    if directory is not None and directory.name.endswith(SUFFIX):
        return directory
    if directory is None and is_unchanged:
        return toml.parent
    return (directory or toml.parent) / (study_name(toml) + SUFFIX)


def study_name(toml: Path) -> str:
    """Return [study] name of a study file; if it has none, the file's stem."""
    try:
        study = tomllib.loads(decode_text(toml.read_bytes(), toml)).get("study")
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{toml}: no study file: {error}", part=str(toml)) from error
    name = study.get("name") if isinstance(study, dict) else None
    return name if isinstance(name, str) and name else toml.stem


def decode_text(content: bytes, file: Path) -> str:
    """Decode a study file. Raises UsageError, which names the line that is not UTF-8."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"{file} line {line}: the byte 0x{content[error.start]:02x} is no UTF-8: save the file "
            "as UTF-8",
            part=str(file),
        ) from error


def check_study(path: Path, text: str) -> Path:
    """Return `path` if it is a submitted study's folder, or its sessions' folder if it has only
    sessions. Raises UsageError otherwise."""
    if (path / PLAN).is_file():
        return path
    sessions = path.with_name(path.name.removesuffix(SUFFIX) + SESSIONS)
    if is_sessions(sessions):
        return sessions
    raise UsageError(
        f"{text}: {path} has no {PLAN}: not a study's folder, or `steelyard submit` was not run",
        part=text,
    )


def list_studies(folder: Path) -> list[Path]:
    """Return the folders directly in a folder that are studies or sessions of studies, by name."""
    if not folder.is_dir():
        return []
    return sorted(
        entry for entry in folder.iterdir() if (entry / PLAN).is_file() or is_sessions(entry)
    )


def find_only_study(folder: Path) -> Path:
    """Return the folder if it is a study's or its sessions', else the only such folder in it.
    Raises UsageError otherwise."""
    if (folder / PLAN).is_file() or is_sessions(folder):
        return folder
    studies = list_studies(folder)
    if len(studies) == 1:
        return studies[0]
    if not studies:
        raise UsageError("no study in the current folder: name one, or `steelyard submit` one")
    names = ", ".join(study.name for study in studies)
    raise UsageError(f"which study? {names}")


@contextlib.contextmanager
def lock_study(study: StudyDir) -> Iterator[None]:
    """Hold the study's lock. Raises UsageError if another submit holds it, MissingError if the file
    system has no locks."""
    study.path.mkdir(parents=True, exist_ok=True)
    fd = os.open(study.lock, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            locks.lock_file(fd)
        except (BlockingIOError, PermissionError) as error:
            who = os.pread(fd, 200, 0).decode(errors="replace").strip()
            raise UsageError(f"{study.path}: another submit is at work ({who})") from error
        except OSError as error:
            if error.errno not in locks.NO_LOCKS:
                raise
            raise MissingError(
                f"{study.lock} cannot be locked ({error.strerror}): {locks.NO_LOCKS_ADVICE}"
            ) from error
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()} {socket.gethostname()}\n".encode(), 0)
        yield
        os.ftruncate(fd, 0)
    finally:
        os.close(fd)


def read_lock_holder(study: StudyDir) -> tuple[int, str] | None:
    """Return process id and host of the submit that holds the lock, or None."""
    try:
        fd = os.open(study.lock, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        if not locks.is_locked(fd):
            return None
        fields = os.pread(fd, 200, 0).decode(errors="replace").split()
    finally:
        os.close(fd)
    return (int(fields[0]), fields[1]) if len(fields) == 2 and fields[0].isdigit() else (0, "?")
