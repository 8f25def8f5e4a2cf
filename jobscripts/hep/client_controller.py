"""Controls all clients of a run of xrootd or roottree; job.sh runs it on the job's first node.

python -m steelyard.jobscripts.hep.client_controller BENCHMARK [HOST SERVER_JSON]

The parameters are in the environment (SY_PARAM_*). HOST and SERVER_JSON describe the run's own
server (xrootd_server.py). SY_HEP_NODES are the nodes with clients, this one first. SY_HEP_SCRIPT
starts a program on another node, and SY_HEP_ADDRESS is this node's address for the others
(client_groups.py).

Prints the lines of client_output.py. Exits with 1 and one line on stderr if something failed, or if
a result differs from the known content of the input.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.jobscripts.errors import FailedError
from steelyard.jobscripts.hep import (
    client_groups,
    client_output,
    client_processes,
    input_files,
    minimum_copy_size,
)
from steelyard.jobscripts.hep import page_cache as hep_page_cache
from steelyard.jobscripts.hep.counting_reader import ReadError, Tally, open_reader
from steelyard.jobscripts.hep.process_lifetime import die_with_parent
from steelyard.jobscripts.hep.xrootd_server import server_counts
from steelyard.jobscripts.parameters import Value

VARIABLE = re.compile(r"(XRD_[A-Z0-9]+)=([^\s=]+)")
# Without these an unreachable server is an error after XRootD's 10 minutes only.
CONNECTING = {"XRD_CONNECTIONWINDOW": "10", "XRD_CONNECTIONRETRY": "3"}
PACKAGES = ("uproot", "awkward", "numpy", "xrootd")


@dataclass
class Input:
    """The location of the input; `known` is the content of its note, None: not requested."""

    where: str
    known: dict[str, Any] | None
    server: str | None = None  # HOST:PORT of the run's own server
    version: str | None = None
    path: Path | None = None  # on this node
    cache_control: tuple[str, int] | None = None  # of the server's node (page_cache.py)
    web: str | None = None  # URL of the background traffic

    def before_iteration(self, page_cache: str) -> float | None:
        """Set the page cache to cold or warm as requested.

        Returns the share of the file that is cached, or None if it is unknown.
        """
        if self.cache_control is not None:
            return hep_page_cache.request_cold_cache(*self.cache_control)
        return (
            hep_page_cache.before_iteration(self.path, page_cache)
            if self.path is not None
            else None
        )


def main() -> int:
    """Run the client; return 0, or 1 with the reason on stderr."""
    die_with_parent()
    benchmark, *server = sys.argv[1:]
    try:
        run(benchmark, server)
    except (
        input_files.DataError,
        client_processes.WorkerError,
        ReadError,
        FailedError,
        hep_page_cache.PagesError,
        OSError,
    ) as error:
        sys.stderr.write(f"steelyard: {error}\n")
        return 1
    return 0


def run(benchmark: str, server: list[str]) -> None:
    """Run all iterations and print the lines, also if a result is wrong."""
    parameters = input_files.parameters(benchmark)
    mode = str(parameters.get("mode", "read"))
    environment = {**os.environ, **variables(parameters)}
    os.environ.update(variables(parameters))
    given = find_input(parameters, mode, server)
    writer = client_output.Writer(benchmark)
    expected = expectation(given.known, mode)
    start = {"asked": parameters, "input": given.known, "expected": expected}
    writer.add("start", {**start, "rtt_s": round_trip_s(given)})
    tasks = [
        {"where": given.where, "asked": parameters}
        for _ in range(int(parameters.get("clients", 1)))
    ]
    found = []
    with client_groups.started(len(tasks), mode, environment, *nodes(len(tasks))) as all_of_them:
        with traffic(all_of_them, parameters, given) as others:
            for number in range(1, int(parameters["iterations"]) + 1):
                share = given.before_iteration(str(parameters["page_cache"]))
                in_turn = parameters.get("order") == "sequential"
                answers = (all_of_them.in_turn if in_turn else all_of_them.together)(tasks)
                line = {"iteration": number, "cached_share": share, "clients": answers}
                writer.add("iteration", {**line, "clock_error_s": all_of_them.clock_error_s})
                note_spans(number, answers)
                found += [answer["found"] for answer in answers]
        all_of_them.disconnect()
    writer.add("server", {**server_counts(given.server, given.version), "others": others})
    tag_versions(given)
    sys.stdout.write(writer.text())
    sys.stdout.flush()
    for number, one in enumerate(found):
        client_output.verify(one, expected, f"client {number % len(tasks)}")


def nodes(clients: int) -> tuple[str, client_groups.Elsewhere | None]:
    """Return this node, and the other nodes of SY_HEP_NODES that have a client."""
    here, *others = os.environ.get("SY_HEP_NODES", "").split()[:clients] or [""]
    if not others:
        return here, None
    elsewhere = client_groups.Elsewhere(
        others, os.environ["SY_HEP_SCRIPT"], os.environ["SY_HEP_ADDRESS"]
    )
    return here, elsewhere


def traffic(
    clients: client_groups.Groups, parameters: Mapping[str, Value], given: Input
) -> AbstractContextManager[list[dict[str, Any]]]:
    """Return a context with the requested background traffic, if any.

    Raises ReadError if the run has no server of its own.
    """
    count = int(parameters.get("background", 0))
    if not count:
        return nullcontext([])
    if given.web is None:
        raise ReadError(
            "background: expected a server of the run's own, which answers the other clients, too; "
            "found none (mode local, or url): leave background out"
        )
    return clients.others(count, given.web)


def tag_versions(given: Input) -> None:
    """Append the versions of the programs to the run's tags, in the form of sy_tag."""
    found = {f"{name}_version": version_of(name) for name in PACKAGES}
    found["xrootd_server_version"] = given.version
    path = Path(os.environ["SY_ATTEMPT_DIR"]) / f"tags.{os.environ['SY_CLIENT']}"
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{key}={value}\n" for key, value in found.items() if value)


def version_of(package: str) -> str | None:
    """Return the version of an installed Python package, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def scratch() -> Path:
    """Return the run's scratch folder on this node."""
    return Path(os.environ["SY_SCRATCH"])


def variables(parameters: Mapping[str, Value]) -> dict[str, str]:
    """Return the environment of XRootD: our settings, overridden by those of `xrd`."""
    found = {**CONNECTING, "XRD_SUBSTREAMSPERCHANNEL": str(parameters["streams"])}
    if "chunk_size" in parameters:
        found["XRD_CPCHUNKSIZE"] = str(parameters["chunk_size"])
        found["XRD_CPPARALLELCHUNKS"] = str(parameters["parallel_chunks"])
    for word in str(parameters["xrd"]).split():
        match = VARIABLE.fullmatch(word)
        if match is None:
            raise ReadError(f"xrd = '{word}': settings such as XRD_REQUESTTIMEOUT=60 are needed")
        found[match[1]] = match[2]
    return found


def find_input(parameters: Mapping[str, Value], mode: str, server: list[str]) -> Input:
    """Return the input: at the run's own server, at a given URL, or a file of this node."""
    if server:
        host, answer = server[0], json.loads(server[1])
        address = f"{bracketed(host)}:{answer['port']}"
        where = f"root://{address}//{answer['path']}"
        cache_control = (host, int(answer["cache_control"]))
        web = f"http://{bracketed(host)}:{answer['web']}" if answer["web"] else None
        check_known(parameters, mode, answer["known"])
        return Input(
            where, answer["known"], address, answer["version"], cache_control=cache_control, web=web
        )
    if parameters["url"]:
        where = str(parameters["url"])
        if parameters["page_cache"] == "cold":
            raise ReadError(
                f"page_cache = cold: {where} is at a server that is not the run's own, whose page "
                "cache cannot be emptied: leave page_cache out"
            )
        has_note = parameters["verify"] and mode != "command"
        return Input(where, read_note(where, mode) if has_note else None)
    path, known = input_files.prepare_input(parameters, scratch())
    check_known(parameters, mode, known)
    return Input(str(path.absolute()), known, path=path.absolute())


def check_known(
    parameters: Mapping[str, Value], mode: str, known: Mapping[str, Any] | None
) -> None:
    """Raise ReadError if the content of a file that Steelyard did not make is to be verified."""
    if known is None and parameters["verify"] and mode != "command":
        raise ReadError(
            f"file = {parameters['file']}: expected verify = false, since nobody knows what must be "
            "found in it; found verify = true"
        )


def round_trip_s(given: Input) -> float | None:
    """Return the round trip to the server in s before anything is read; None without a server."""
    return (
        minimum_copy_size.round_trip_s(*minimum_copy_size.address_of(given.where))
        if given.path is None
        else None
    )


def bracketed(host: str) -> str:
    """Return a host as in a URL: an IPv6 address is in brackets."""
    return f"[{host}]" if ":" in host else host


def read_note(url: str, mode: str) -> dict[str, Any]:
    """Read the note that is next to a file at a server."""
    note = f"{url}.json"
    try:
        text = copied(note) if mode == "xrdcp" else read_text(note)
    except ReadError as error:
        raise ReadError(
            f"nothing to verify against: {error}. Put FILE.root.json beside FILE.root at the "
            "server, or give verify = false for a file that Steelyard did not make"
        ) from error
    return input_files.check_note(text, note)


def read_text(url: str) -> str:
    """Return the text of a small file."""
    reader = open_reader(url, Tally(), vector=False)
    try:
        return reader.read([(0, reader.size)])[0].decode("utf-8", "replace")
    finally:
        reader.close()


def copied(url: str) -> str:
    """Return the text of a file, read by xrdcp: its mode does not need the Python module."""
    command = ["xrdcp", "--silent", url, "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode != 0:
        raise ReadError(f"xrdcp {url}: {done.stderr.strip()[-300:]}")
    return done.stdout


def expectation(known: Mapping[str, Any] | None, mode: str) -> dict[str, Any] | None:
    """Return what clients must find in the input; None: nothing is verified."""
    if known is None or mode == "command":
        return None
    if mode == "xrdcp":
        return {"sha256": known["sha256"]}
    if mode == "read":
        return {"content_sha256": known["content_sha256"]}
    return dict(known["pairs"])


def note_spans(iteration: int, answers: Sequence[Mapping[str, Any]]) -> None:
    """Append two lines to the attempt's spans.CLIENT; times of answers are of CLOCK_MONOTONIC.

    Does nothing in a run with several clients, each of which has its own iterations.
    """
    if os.environ.get("SY_CLIENTS") != "1":
        return  # each of several clients has its own times
    offset_s = time.time() - time.monotonic()
    begin_s = min(answer["begin_s"] for answer in answers)
    ends_s = [answer["end_s"] for answer in answers]
    lines = [
        {
            "span": span,
            "iteration": iteration,
            "begin_unix_s": begin_s + offset_s,
            "end_unix_s": end_s + offset_s,
        }
        for span, end_s in (("iteration", max(ends_s)), ("until_first", min(ends_s)))
    ]
    path = Path(os.environ["SY_ATTEMPT_DIR"]) / f"spans.{os.environ['SY_CLIENT']}"
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
