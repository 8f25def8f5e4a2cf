"""An XRootD server for one run: starts it, prints `ready PID {JSON}`, and ends it with the run.

python -m steelyard.jobscripts.hep.xrootd_server BENCHMARK

It runs as the job's user on a free port, and serves one folder read-only. It ends when this process
gets SIGTERM or is killed, or when nobody reads its output any more. The JSON: `port`, `path` (of
the input, in a client's request), `version`, `known` (input_files.py), `cache_control`
(page_cache.py's port), `web` (background_traffic.py's port, or null).
"""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from steelyard.jobscripts.hep import background_traffic, input_files
from steelyard.jobscripts.hep.page_cache import CacheControl
from steelyard.jobscripts.hep.process_lifetime import die_with_parent
from steelyard.jobscripts.parameters import Value
from steelyard.jobscripts.plurals import counted, inflect

# Names of elements in <stats id="xrootd"><ops> (XRootD's "System Monitoring Reference", summary
# format).
COUNTS = {"opens": "open", "reads": "rd", "page_reads": "pr", "vector_reads": "rv"}
COUNTS["vector_segments"] = "rs"
QUIET_S = 30.0  # longest time until the server has counted its clients' disconnections


def server_counts(server: str | None, version: str | None) -> dict[str, Any]:
    """Return the counts of the run's own server after its clients disconnected, or the reason."""
    if server is None:
        return {"counts": None, "reason": "no server of the run's own"}
    program = shutil.which("xrdfs")
    if program is None:
        return {"counts": None, "reason": "xrdfs is missing (Debian package xrootd-client)"}
    end = time.monotonic() + QUIET_S
    while True:
        counts, links = query_server(program, server)
        if counts is None or links == 1:  # only the connection of this query
            break
        if time.monotonic() > end:
            return {
                "counts": None,
                "reason": f"{counted(links - 1, 'client')} {inflect(links - 1, 'is', 'are')} still connected",
            }
        time.sleep(0.1)
    reason = None if counts else "the server's answer is not understood"
    return {"counts": counts, "reason": reason, "version": version}


def query_server(program: str, server: str) -> tuple[dict[str, int] | None, int]:
    """Return the server's counts since its start, and its number of connections.

    A connection remains in that number until its requests are counted.
    """
    command = [program, server, "query", "stats", "a"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return counts_in(done.stdout)


def counts_in(answer: str) -> tuple[dict[str, int] | None, int]:
    """Return counts and connections from the server's XML; (None, 0) if it is not valid."""
    try:
        root = xml.etree.ElementTree.fromstring(answer.strip(" \n\0"))
    except xml.etree.ElementTree.ParseError:
        return None, 0
    operations = root.find("stats[@id='xrootd']/ops")
    link, poll = root.find("stats[@id='link']"), root.find("stats[@id='poll']")
    if operations is None or link is None or poll is None:
        return None, 0
    counts = {name: int(operations.findtext(tag, "0")) for name, tag in COUNTS.items()}
    counts["bytes_sent"] = int(link.findtext("out", "0"))
    # When a connection closes, the server decrements `num`, then adds its requests to `ops`, then
    # decrements `att` (XrdLinkXeq::Close). So `num` alone may decrease before the requests are
    # counted.
    return counts, max(int(link.findtext("num", "0")), int(poll.findtext("att", "0")))


PATIENCE_S = 30.0
PREFIX, OWN_BASE = "steelyard-xrootd.", "/tmp"
READY = re.compile(r"^-+ xrootd \S+:(\d+) initialization completed\.$", re.MULTILINE)
FAILED = re.compile(r"^-+ xrootd \S+ initialization failed\.$|^xrootd ended$", re.MULTILINE)
USER = "nobody"  # its user in a job of root, since xrootd refuses root

CONFIG = """\
xrd.port any
xrd.network nodnr
all.export / r/o nolock
oss.localroot {folder}
all.adminpath {own}
all.pidpath {own}
"""

# The guard is between this process and xrootd. When its input is closed, even because this process
# was killed, it kills the server, which has no data to lose, and removes both folders. A death
# signal (prctl) would be lost when the server changes its user.
GUARD = """\
copies=$1
shift
trap : TERM INT
{ "$@" </dev/null; echo 'xrootd ended'; } &
read -r _
mapfile -t server < <(ps -o pid= --ppid "$!")
kill -s KILL ${server[@]} $! 2>/dev/null
rm -rf --one-file-system -- "$0" "$copies"
"""


class ServerError(Exception):
    """The server could not be started; the message is one line."""


def start(own: Path, copies: Path, program: str) -> tuple[subprocess.Popen[bytes], int]:
    """Start a server of `own`/data, with its own files in `own`; return its guard and port."""
    config, log = own / "xrootd.cf", own / "log"
    config.write_text(CONFIG.format(folder=own / "data", own=own), encoding="utf-8")
    command = [program, "-c", str(config)]
    if os.geteuid() == 0:
        shutil.chown(own, USER)
        command += ["-R", USER]
    with log.open("wb") as file:
        guard = subprocess.Popen(
            ["bash", "-c", GUARD, str(own), str(copies), *command],
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=subprocess.STDOUT,
            cwd=own,
        )
    return guard, wait_ready(guard, log)


def wait_ready(guard: subprocess.Popen[bytes], log: Path) -> int:
    """Return the port once the server's log reports that it listens; else raise ServerError."""
    end = time.monotonic() + PATIENCE_S
    while True:
        text = log.read_text(encoding="utf-8", errors="replace")
        found = READY.search(text)
        if found:
            return int(found[1])
        late = time.monotonic() > end
        if late or FAILED.search(text):
            what = f"says nothing for {PATIENCE_S:.0f} s" if late else "does not start"
            stop(guard)
            raise ServerError(f"xrootd {what}: {' / '.join(text.splitlines()[-3:])}")
        time.sleep(0.02)


def stop(guard: subprocess.Popen[bytes]) -> None:
    """End the server: the guard acts at the end of its input."""
    guard.communicate()


def version(program: str) -> str:
    """Return the version that xrootd prints."""
    done = subprocess.run([program, "-v"], capture_output=True, text=True, timeout=20, check=False)
    return (done.stdout + done.stderr).strip()


def watch() -> None:
    """Return when nobody reads our output any more."""
    poller = select.poll()
    poller.register(sys.stdout.fileno(), 0)  # POLLERR is reported without a request: poll(2)
    poller.poll()


def handle_stop_signal(number: int, frame: FrameType | None) -> NoReturn:
    """Exit on SIGTERM, so that temporary files are removed."""
    sys.exit(128 + number)


def folder(stack: ExitStack, base: str) -> Path:
    """Make a folder of the run, which is removed afterwards."""
    name = stack.enter_context(
        tempfile.TemporaryDirectory(prefix=PREFIX, dir=base, ignore_cleanup_errors=True)
    )
    Path(name).chmod(0o711)  # for USER, in a job of root
    return Path(name)


def web(stack: ExitStack, parameters: Mapping[str, Value]) -> int | None:
    """Start a server for the requested background traffic and return its port; None: no traffic."""
    if not parameters.get("background"):
        return None
    process = stack.enter_context(
        background_traffic.started(["serve", str(parameters["background_size"])])
    )
    return int(background_traffic.line_of(process))


def serve(stack: ExitStack) -> None:
    """Prepare the input, start the server, and wait for the end."""
    program = shutil.which("xrootd")
    if program is None:
        raise ServerError("xrootd is missing: install the Debian package xrootd-server")
    copies = folder(
        stack, os.environ.get("SY_SCRATCH_BASE") or os.environ.get("TMPDIR") or OWN_BASE
    )
    # A short path without blanks: it contains sockets, and the configuration has no quotes.
    own = folder(stack, OWN_BASE)
    parameters = input_files.parameters(sys.argv[1])
    path, known = input_files.prepare_input(parameters, copies)
    (own / "data").mkdir()
    (own / "data" / path.name).symlink_to(path.absolute())
    guard, port = start(own, copies, program)
    stack.callback(stop, guard)
    control = CacheControl(path, str(parameters["page_cache"]))
    control.open()
    answer = {"port": port, "path": path.name, "version": version(program), "known": known}
    answer["cache_control"] = control.port
    answer["web"] = web(stack, parameters)
    sys.stdout.write(f"ready {os.getpid()} {json.dumps(answer)}\n")
    sys.stdout.flush()
    watch()


def main() -> int:
    """Run the server; return 0, or 1 with a line on stderr if it cannot serve."""
    die_with_parent()
    signal.signal(signal.SIGTERM, handle_stop_signal)
    signal.signal(signal.SIGINT, handle_stop_signal)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        with ExitStack() as stack:
            serve(stack)
    except (ServerError, input_files.DataError, BrokenPipeError) as error:
        sys.stderr.write(f"steelyard: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
