"""Background traffic during a measurement: HTTP downloads from the server's node.

python -m steelyard.jobscripts.hep.background_traffic serve BYTES
python -m steelyard.jobscripts.hep.background_traffic fetch URL

`serve` prints its port, and answers every GET with that many bytes. `fetch` repeats the request. It
prints `ready` after the first answer, and when its standard input ends a line of JSON: `requests`,
`bytes`, `seconds`. Both end when their parent ends.
"""

from __future__ import annotations

import http.client
import http.server
import json
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from steelyard.jobscripts.hep.process_lifetime import die_with_parent

PIECE = 1 << 20
PATIENCE_S = 60.0
Process = subprocess.Popen[str]


class BackgroundError(Exception):
    """The requested background traffic could not be generated; the message is one line."""


class Server(http.server.ThreadingHTTPServer):
    """An HTTP server for IPv4 and IPv6."""

    daemon_threads = True
    request_queue_size = 128
    address_family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET

    def __init__(self, size: int) -> None:
        self.size = size
        super().__init__(("", 0), Answer)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do nothing: a client that ends closes its connection in the middle of an answer."""

    def server_bind(self) -> None:
        """Bind without looking up the host's name, which may take long."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()


class Answer(http.server.BaseHTTPRequestHandler):
    """Answers with zeros, since nothing on the path compresses TCP."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        """Send all requested bytes."""
        self.send_response(200)
        self.send_header("Content-Length", str(self.server.size))
        self.end_headers()
        remaining, zeros = self.server.size, bytes(min(PIECE, self.server.size))
        while remaining > 0:
            self.wfile.write(zeros[: min(remaining, PIECE)])
            remaining -= PIECE

    def log_message(self, *args: object) -> None:
        """Log nothing."""


def command(*arguments: str) -> list[str]:
    """Return the command that runs this module as a program."""
    return [sys.executable, "-m", "steelyard.jobscripts.hep.background_traffic", *arguments]


@contextmanager
def started(arguments: Sequence[str]) -> Iterator[Process]:
    """Start one of the two programs, and end it at the end of the `with` statement."""
    process = subprocess.Popen(
        command(*arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate()


def line_of(process: Process) -> str:
    """Return the next line that a program prints, without its end."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


class Others:
    """The clients of one node that generate the traffic."""

    def __init__(self, processes: Sequence[Process]) -> None:
        self.processes = processes

    def end(self) -> list[dict[str, Any]]:
        """End the clients and return the result of each; raise BackgroundError if one failed."""
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.close()
        found = []
        for process in self.processes:
            line = line_of(process)
            process.stdin = None  # communicate() must not use the closed pipe
            if not line:
                raise BackgroundError("a client of the background traffic ended with an error")
            found.append(json.loads(line))
        return found


@contextmanager
def others(count: int, url: str) -> Iterator[Others]:
    """Start `count` clients and wait until each is ready.

    Raises BackgroundError if a client gets no answer.
    """
    with ExitStack() as stack:
        processes = [stack.enter_context(started(["fetch", url])) for _ in range(count)]
        for process in processes:
            if line_of(process) != "ready":
                raise BackgroundError(f"a client of the background traffic got nothing from {url}")
        yield Others(processes)


# --- the two programs ------------------------------------------------------------------------


def serve(size: int) -> None:
    """Answer requests until the process is ended."""
    server = Server(size)
    write_line(str(server.server_address[1]))
    server.serve_forever()


def fetch(url: str) -> None:
    """Download repeatedly until standard input ends."""
    over = threading.Event()
    threading.Thread(target=wait_for_end, args=(over,), daemon=True).start()
    address = urllib.parse.urlsplit(url)
    line = http.client.HTTPConnection(str(address.hostname), address.port, timeout=PATIENCE_S)
    begin_s, requests, size = time.monotonic(), 0, 0
    while not over.is_set():
        line.request("GET", "/")
        answer = line.getresponse()
        while not over.is_set() and (piece := answer.read(PIECE)):
            size += len(piece)
        requests += answer.isclosed()  # whether the answer was read completely
        if requests == 1 and not over.is_set():
            write_line("ready")
    seconds = time.monotonic() - begin_s
    write_line(json.dumps({"requests": requests, "bytes": size, "seconds": seconds}))


def wait_for_end(over: threading.Event) -> None:
    """Wait for the end of standard input."""
    sys.stdin.read()
    over.set()


def write_line(text: str) -> None:
    """Print a line at once: another process waits for it."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Run one of the programs; return 0, or 1 with a line on stderr after an error."""
    die_with_parent()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    what, word = sys.argv[1:]
    try:
        serve(int(word)) if what == "serve" else fetch(word)
    except (OSError, http.client.HTTPException) as error:
        sys.stderr.write(f"steelyard: background traffic: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
