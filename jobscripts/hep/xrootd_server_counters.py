"""Reads the counters of the run's own XRootD server: what it has sent to its clients."""

from __future__ import annotations

import shutil
import subprocess
import time
import xml.etree.ElementTree
from typing import Any

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
