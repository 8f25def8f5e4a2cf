"""A lock for commands that cron starts: one process of a command at a time on this machine.

On a shared file system that does not answer, a command waits for hours, and cron starts more of
them. So the lock is on a local disk, and is taken before the shared folder is accessed. It ends
with its process, however that ends."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from steelyard.analysis.base import locks
from steelyard.wrappers.base.errors import MissingError


@contextmanager
def hold_command_lock(command: str, folders: Sequence[Path]) -> Iterator[None]:
    """Keep any other `steelyard COMMAND` of this user from these folders. Raises MissingError, with
    the other's process id, if one is running."""
    path = lock_path(command, folders)
    make_lock_folder(path.parent)
    try:
        fd = take_lock(path)
    except BlockingIOError:
        named = ", ".join(map(str, folders))
        raise MissingError(
            f"another `steelyard {command}` of {named} is at work (process {read_holder(path)}): this "
            "one has done nothing. If that one hangs, check that the folder answers (ls), and end it"
        ) from None
    except OSError as error:
        raise MissingError(f"{path}: no lock can be made there: {error.strerror}") from None
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(fd)


def lock_folder() -> Path:
    """Return a folder in which no other user can create files: root's run folder, else this user's
    in /tmp."""
    if os.geteuid() == 0:
        return Path(os.environ.get("STEELYARD_RUN_DIR") or "/run/steelyard")
    return Path(tempfile.gettempdir()) / f"steelyard-{os.geteuid()}"


def lock_path(command: str, folders: Sequence[Path]) -> Path:
    """Return the lock's path, from the folders' names alone: accessing the folders could block."""
    names = "\n".join(sorted(str(folder.absolute()) for folder in folders))
    return lock_folder() / f"{command}.{hashlib.sha256(names.encode()).hexdigest()[:16]}.lock"


def make_lock_folder(folder: Path) -> None:
    """Create the folder. Raises MissingError if others could write to it."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise MissingError(f"{folder}: no lock can be made there: {error.strerror}") from None
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise MissingError(
            f"{folder} belongs to uid {status.st_uid}, mode {status.st_mode & 0o7777:04o}; expected a "
            "folder of yours that nobody else can write to: remove it, or chmod go-w"
        )


def take_lock(path: Path, wait: bool = False) -> int:
    """Return the descriptor of a locked file that is still at `path`: its last holder may have
    removed it between our open and our lock. Without `wait`, raise BlockingIOError if it is
    locked."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            locks.lock_file(fd, wait)
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
            if path.stat().st_ino == os.fstat(fd).st_ino:
                return fd
        except FileNotFoundError:
            pass
        except OSError:
            os.close(fd)
            raise
        os.close(fd)


def read_holder(path: Path) -> str:
    """Return the process id that the holder has written, or "unknown"."""
    with suppress(OSError):
        return path.read_text(encoding="ascii", errors="replace").strip() or "unknown"
    return "unknown"
