"""Starts the servers of a guest's files, then executes QEMU: SERVER FOLDER QEMU OPTION…

Each server gets a socket that already listens, so QEMU does not wait for it. The guest mounts
`root`, the host's files, below its overlay, and `files`, which guest and host both write to."""

import os
import socket
import subprocess
import sys
from pathlib import Path

QUIETLY = "--no-announce-submounts"  # the first virtiofsd, of QEMU itself, never announces them
CACHE = {"root": "always", "files": "auto"}


def main(server: str, folder: Path, line: list[str]) -> None:
    """Start the servers and replace this process by QEMU."""
    # An announced mount point would be missing from the guest's overlay on `root`.
    done = subprocess.run([server, "--help"], capture_output=True, text=True, check=False)
    quietly = [QUIETLY] if QUIETLY in done.stdout + done.stderr else []
    for name, cache in CACHE.items():
        path = folder / f"{name}.socket"
        path.unlink(missing_ok=True)  # of a killed guest
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
            listening.listen(1)
            how = ["-o", f"source=/,cache={cache},sandbox=chroot", *quietly]
            argv = [server, f"--fd={listening.fileno()}", *how]
            _start(argv, listening, folder / f"{name}.log")
        line += ["-chardev", f"socket,id={name},path={path}"]
        line += ["-device", f"vhost-user-fs-pci,chardev={name},tag={name}"]
    os.execvp(line[0], line)


def _start(argv: list[str], listening: socket.socket, log: Path) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    listening.set_inheritable(True)
    os.posix_spawn(
        argv[0],
        argv,
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0),
            (os.POSIX_SPAWN_OPEN, 1, log, flags, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
    )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
