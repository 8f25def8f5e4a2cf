"""One process of a command at a time on this machine, for commands that cron starts.

On a shared file system that does not answer, a command waits for hours, and cron starts the next ones.
So the lock is on a local disk, and is taken before the shared folder is touched. It ends with its
process, however that ends.
"""

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
    """No second `steelyard COMMAND` of this user works on these folders meanwhile; MissingError where
    one does already, with its process id."""
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
    """Where no other user can make files: root's run folder, else a folder of this user's in /tmp."""
    if os.geteuid() == 0:
        return Path(os.environ.get("STEELYARD_RUN_DIR") or "/run/steelyard")
    return Path(tempfile.gettempdir()) / f"steelyard-{os.geteuid()}"


def lock_path(command: str, folders: Sequence[Path]) -> Path:
    """The record folders are known by their names alone: looking at them could take for ever."""
    names = "\n".join(sorted(str(folder.absolute()) for folder in folders))
    return lock_folder() / f"{command}.{hashlib.sha256(names.encode()).hexdigest()[:16]}.lock"


def make_lock_folder(folder: Path) -> None:
    """MissingError where others could put something there."""
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


def take_lock(path: Path) -> int:
    """The descriptor of a locked file that is still at `path`: its last holder may have removed it
    between our opening and our locking."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            locks.lock_file(fd)
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
    """The process id that the holder has written."""
    with suppress(OSError):
        return path.read_text(encoding="ascii", errors="replace").strip() or "unknown"
    return "unknown"
