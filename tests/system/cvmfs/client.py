"""A real CVMFS client, and an HTTP server of a repository for it."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.system.cvmfs.conftest import NAME
from tests.system.cvmfs.repository import Repository
from tests.waiting import wait_for

# By program: its package, and the source of its mounts.
CLIENTS = {
    "cvmfs2": ("CERN's client, no Debian package", "cvmfs2"),
    "cvmfs-cli": ("the client in Rust: cargo install cvmfs", "cernvmfs"),
}
# default.conf of CernVM-FS, without a site's settings.
CONFIGURATION = """
CVMFS_SERVER_URL={url}
CVMFS_HTTP_PROXY=DIRECT
CVMFS_PUBLIC_KEY={key}
CVMFS_CACHE_BASE={folder}/cache
CVMFS_RELOAD_SOCKETS={folder}/sockets
CVMFS_SHARED_CACHE=no
CVMFS_QUOTA_LIMIT=4000
CVMFS_SEND_INFO_HEADER=no
"""


class Handler(http.server.SimpleHTTPRequestHandler):
    """Records the requests, and logs nothing."""

    def do_GET(self) -> None:
        """Send a file below /cvmfs/NAME."""
        assert isinstance(self.server, Server)
        self.server.requested.append(self.path)
        super().do_GET()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class Server(http.server.ThreadingHTTPServer):
    """A server of `folder`; `requested`: paths, in order."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        self.requested: list[str] = []
        handler = functools.partial(Handler, directory=str(folder))
        super().__init__(("127.0.0.1", 0), handler)

    def objects(self) -> list[str]:
        """Return the requested objects of the repository, without the signed files."""
        return [path for path in self.requested if path.startswith("/data/")]


@contextmanager
def served(repository: Repository) -> Iterator[Server]:
    """Run the server for the `with` statement."""
    with Server(repository.target) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@dataclass
class Mounted:
    """A repository that a client has mounted."""

    program: str
    point: Path
    folder: Path  # cache and messages
    server: Server
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    @property
    def source(self) -> str:
        """Return the mount's source in the kernel."""
        return CLIENTS[self.program][1]


def command(program: str, repository: Repository, server: Server, folder: Path) -> list[str]:
    """Return the command line of the client, which stays in the foreground."""
    url, point = f"http://127.0.0.1:{server.server_port}", folder / "mnt"
    if program == "cvmfs-cli":
        return [program, url, str(point), str(folder / "cache")]
    text = CONFIGURATION.format(url=url, key=repository.public_key, folder=folder)
    (folder / "client.conf").write_text(text, encoding="utf-8")
    # As mount.cvmfs starts it: without fsname the mount's source is not the client's name.
    options = f"config={folder}/client.conf,fsname=cvmfs2"
    return [program, "-f", "-o", options, NAME, str(point)]


@contextmanager
def mounted(program: str, repository: Repository, folder: Path) -> Iterator[Mounted]:
    """Mount the repository with that client and an empty cache; skip if that is impossible."""
    if shutil.which(program) is None:
        pytest.skip(f"no {program} on the PATH ({CLIENTS[program][0]})")
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be opened")
    for name in ("mnt", "cache", "sockets"):
        (folder / name).mkdir()
    point, log = folder / "mnt", folder / "log"
    with served(repository) as server, log.open("wb") as out:
        process = subprocess.Popen(
            command(program, repository, server, folder), stdout=out, stderr=out
        )
        try:
            wait_for(
                f"{program} mounts", lambda: point.is_mount() or process.poll() is not None,
                seen=lambda: log.read_text(errors="replace")[-500:],
            )  # fmt: skip
            assert process.poll() is None, log.read_text(errors="replace")[-2000:]
            yield Mounted(program, point, folder, server)
        finally:
            subprocess.run(["fusermount", "-u", point], capture_output=True, check=False)
            process.terminate()
            process.wait()
