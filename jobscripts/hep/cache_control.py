"""How a client asks the server's node for a cold page cache: a TCP port beside the server's.

Whoever connects makes the node do before an iteration what `page_cache` says, for the one file that
is served, and is told in one line of JSON which share of it is in memory.
"""

from __future__ import annotations

import json
import socket
import socketserver
import threading
from pathlib import Path
from typing import Any

from steelyard.jobscripts.hep import pages

PATIENCE_S = 120.0


class CacheControl(socketserver.TCPServer):
    """Answers one after the other, from a thread of its own."""

    address_family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET

    def __init__(self, path: Path, page_cache: str) -> None:
        self.path, self.page_cache = path, page_cache
        super().__init__(("", 0), Answer)

    def server_bind(self) -> None:
        """For IPv4, too, whatever the node's name means."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server_address[1])

    def open(self) -> None:
        """From now on; it ends with the process."""
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Answer(socketserver.BaseRequestHandler):
    """One question."""

    server: CacheControl

    def handle(self) -> None:
        """Prepare the file and tell."""
        self.request.sendall((json.dumps(prepare(self.server)) + "\n").encode())


def prepare(control: CacheControl) -> dict[str, Any]:
    """The answer, also where the pages stay."""
    try:
        return {"cached_share": pages.before_iteration(control.path, control.page_cache)}
    except (pages.PagesError, OSError) as error:
        return {"error": str(error)}


def ask(host: str, port: int) -> float | None:
    """Before an iteration: the share of the file that is in the server's page cache."""
    with socket.create_connection((host, port), PATIENCE_S) as line, line.makefile() as file:
        answer = json.loads(file.readline() or '{"error": "no answer from the server\'s node"}')
    if "error" in answer:
        raise pages.PagesError(str(answer["error"]))
    share = answer["cached_share"]
    return None if share is None else float(share)
