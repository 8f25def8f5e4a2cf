"""The client of the benchmarks xrootd and roottree, run by their job.sh on the job's first node.

    python -m steelyard.jobscripts.hep.client BENCHMARK [HOST SERVER_WORDS]

The parameters are in the environment (SY_PARAM_*). HOST and SERVER_WORDS: a server of the run's own
and what it said (server.py). SY_HEP_NODES: nodes with clients, this one first; SY_HEP_SCRIPT and
SY_HEP_ADDRESS: how the others are reached, and this one by them (client_groups.py). Prints the lines of
client_output.py; exits with 1 and one line on stderr when something failed, a result that is not what
the input was made with among it.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.jobscripts.errors import FailedError
from steelyard.jobscripts.hep import (
    client_groups,
    client_output,
    copy_length,
    input_files,
    run_request,
    workers,
)
from steelyard.jobscripts.hep import page_cache as hep_page_cache
from steelyard.jobscripts.hep.process_lifetime import die_with_parent
from steelyard.jobscripts.hep.reader import ReadError, Tally, open_reader
from steelyard.jobscripts.parameters import Value
from steelyard.jobscripts.plurals import counted, inflect

VARIABLE = re.compile(r"(XRD_[A-Z0-9]+)=([^\s=]+)")
# A server that is not there is an error within seconds, not after XRootD's 10 minutes.
CONNECTING = {"XRD_CONNECTIONWINDOW": "10", "XRD_CONNECTIONRETRY": "3"}
# Path below <stats id="xrootd"><ops> (XRootD's "System Monitoring Reference", summary format).
COUNTS = {"opens": "open", "reads": "rd", "page_reads": "pr", "vector_reads": "rv"}
COUNTS["vector_segments"] = "rs"
PACKAGES = ("uproot", "awkward", "numpy", "xrootd")
QUIET_S = 30.0  # how long the server may take to see that its clients have gone


@dataclass
class Input:
    """Where the input is; `known`: what its note has of it, None: not asked for."""

    where: str
    known: dict[str, Any] | None
    server: str | None = None  # HOST:PORT of a server of the run's own
    version: str | None = None
    path: Path | None = None  # on this node
    cache_control: tuple[str, int] | None = None  # of the server's node (page_cache.py)
    web: str | None = None  # whom the background traffic comes from

    def before_iteration(self, page_cache: str) -> float | None:
        """Cold or warm, as asked for; the share of the file that is in memory, if it is known."""
        if self.cache_control is not None:
            return hep_page_cache.request_cold_cache(*self.cache_control)
        return (
            hep_page_cache.before_iteration(self.path, page_cache)
            if self.path is not None
            else None
        )


def main() -> int:
    """0, or 1 with the reason on stderr."""
    die_with_parent()
    benchmark, *server = sys.argv[1:]
    try:
        run(benchmark, server)
    except (
        input_files.DataError,
        workers.WorkerError,
        ReadError,
        FailedError,
        hep_page_cache.PagesError,
        OSError,
    ) as error:
        sys.stderr.write(f"steelyard: {error}\n")
        return 1
    return 0


def run(benchmark: str, server: list[str]) -> None:
    """All iterations; the lines are printed also when what was found is wrong."""
    asked = run_request.parameters(benchmark)
    mode = str(asked.get("mode", "read"))
    environment = {**os.environ, **variables(asked)}
    os.environ.update(variables(asked))
    given = find_input(asked, mode, server)
    writer = client_output.Writer(benchmark)
    expected = expectation(given.known, mode)
    start = {"asked": asked, "input": given.known, "expected": expected}
    writer.add("start", {**start, "rtt_s": round_trip_s(given)})
    tasks = [{"where": given.where, "asked": asked} for _ in range(int(asked.get("clients", 1)))]
    found = []
    with client_groups.started(len(tasks), mode, environment, *nodes(len(tasks))) as all_of_them:
        with traffic(all_of_them, asked, given) as others:
            for number in range(1, int(asked["iterations"]) + 1):
                share = given.before_iteration(str(asked["page_cache"]))
                in_turn = asked.get("order") == "sequential"
                answers = (all_of_them.in_turn if in_turn else all_of_them.together)(tasks)
                line = {"iteration": number, "cached_share": share, "clients": answers}
                writer.add("iteration", {**line, "clock_error_s": all_of_them.clock_error_s})
                note_spans(number, answers)
                found += [answer["found"] for answer in answers]
        all_of_them.disconnect()
    writer.add("server", {**server_counts(given), "others": others})
    tag_versions(given)
    sys.stdout.write(writer.text())
    sys.stdout.flush()
    for number, one in enumerate(found):
        client_output.verify(one, expected, f"client {number % len(tasks)}")


def nodes(clients: int) -> tuple[str, client_groups.Elsewhere | None]:
    """This node, and those others that have a client, of SY_HEP_NODES."""
    here, *others = os.environ.get("SY_HEP_NODES", "").split()[:clients] or [""]
    if not others:
        return here, None
    way = client_groups.Elsewhere(others, os.environ["SY_HEP_SCRIPT"], os.environ["SY_HEP_ADDRESS"])
    return here, way


def traffic(
    clients: client_groups.Groups, asked: Mapping[str, Value], given: Input
) -> AbstractContextManager[list[dict[str, Any]]]:
    """Background traffic, if it was asked for."""
    count = int(asked.get("background", 0))
    if not count:
        return nullcontext([])
    if given.web is None:
        raise ReadError(
            "background: expected a server of the run's own, which answers the other clients, too; "
            "found none (mode local, or url): leave background out"
        )
    return clients.others(count, given.web)


def tag_versions(given: Input) -> None:
    """Tags of the run, as sy_tag writes them: what it ran with."""
    found = {f"{name}_version": version_of(name) for name in PACKAGES}
    found["xrootd_server_version"] = given.version
    path = Path(os.environ["SY_ATTEMPT_DIR"]) / f"tags.{os.environ['SY_CLIENT']}"
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{key}={value}\n" for key, value in found.items() if value)


def version_of(package: str) -> str | None:
    """Of an installed Python package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def scratch() -> Path:
    """The run's scratch folder on this node."""
    return Path(os.environ["SY_SCRATCH"])


def variables(asked: Mapping[str, Value]) -> dict[str, str]:
    """XRootD's own settings: ours, then those of `xrd`, which come last."""
    found = {**CONNECTING, "XRD_SUBSTREAMSPERCHANNEL": str(asked["streams"])}
    if "chunk_size" in asked:
        found["XRD_CPCHUNKSIZE"] = str(asked["chunk_size"])
        found["XRD_CPPARALLELCHUNKS"] = str(asked["parallel_chunks"])
    for word in str(asked["xrd"]).split():
        match = VARIABLE.fullmatch(word)
        if match is None:
            raise ReadError(f"xrd = '{word}': settings such as XRD_REQUESTTIMEOUT=60 are needed")
        found[match[1]] = match[2]
    return found


def find_input(asked: Mapping[str, Value], mode: str, server: list[str]) -> Input:
    """The run's own server, a given URL, or a file of this node."""
    if server:
        host, words = server[0], json.loads(server[1])
        address = f"{bracketed(host)}:{words['port']}"
        where = f"root://{address}//{words['path']}"
        beside = (host, int(words["cache_control"]))
        web = f"http://{bracketed(host)}:{words['web']}" if words["web"] else None
        check_known(asked, mode, words["known"])
        return Input(
            where, words["known"], address, words["version"], cache_control=beside, web=web
        )
    if asked["url"]:
        where = str(asked["url"])
        if asked["page_cache"] == "cold":
            raise ReadError(
                f"page_cache = cold: {where} is at a server that is not the run's own, whose page "
                "cache cannot be emptied: leave page_cache out"
            )
        has_note = asked["verify"] and mode != "command"
        return Input(where, read_note(where, mode) if has_note else None)
    path, known = run_request.place(asked, scratch())
    check_known(asked, mode, known)
    return Input(str(path.absolute()), known, path=path.absolute())


def check_known(asked: Mapping[str, Value], mode: str, known: Mapping[str, Any] | None) -> None:
    """Nothing is compared of a file that Steelyard has not made: whoever wants that says so."""
    if known is None and asked["verify"] and mode != "command":
        raise ReadError(
            f"file = {asked['file']}: expected verify = false, since nobody knows what must be "
            "found in it; found verify = true"
        )


def round_trip_s(given: Input) -> float | None:
    """To the server, before anything is read; None without one."""
    return (
        copy_length.round_trip_s(*copy_length.address_of(given.where))
        if given.path is None
        else None
    )


def bracketed(host: str) -> str:
    """An IPv6 address as a URL has it."""
    return f"[{host}]" if ":" in host else host


def read_note(url: str, mode: str) -> dict[str, Any]:
    """What is known about the file at a server, from its note beside it."""
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
    """A small file as a text."""
    reader = open_reader(url, Tally(), vector=False)
    try:
        return reader.read([(0, reader.size)])[0].decode("utf-8", "replace")
    finally:
        reader.close()


def copied(url: str) -> str:
    """The same by xrdcp, where the Python module is not needed."""
    command = ["xrdcp", "--silent", url, "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode != 0:
        raise ReadError(f"xrdcp {url}: {done.stderr.strip()[-300:]}")
    return done.stdout


def expectation(known: Mapping[str, Any] | None, mode: str) -> dict[str, Any] | None:
    """What clients must find in the input."""
    if known is None or mode == "command":
        return None
    if mode == "xrdcp":
        return {"sha256": known["sha256"]}
    if mode == "read":
        return {"content_sha256": known["content_sha256"]}
    return dict(known["pairs"])


# --- the server's own counts -----------------------------------------------------------------


def server_counts(given: Input) -> dict[str, Any]:
    """What the run's own server counted, once its clients have gone; else why there is nothing."""
    if given.server is None:
        return {"counts": None, "reason": "no server of the run's own"}
    program = shutil.which("xrdfs")
    if program is None:
        return {"counts": None, "reason": "xrdfs is missing (Debian package xrootd-client)"}
    end = time.monotonic() + QUIET_S
    while True:
        counts, links = ask_server(program, given.server)
        if counts is None or links == 1:  # our own
            break
        if time.monotonic() > end:
            return {
                "counts": None,
                "reason": f"{counted(links - 1, 'client')} {inflect(links - 1, 'is', 'are')} still connected",
            }
        time.sleep(0.1)
    reason = None if counts else "the server's answer is not understood"
    return {"counts": counts, "reason": reason, "version": given.version}


def ask_server(program: str, server: str) -> tuple[dict[str, int] | None, int]:
    """Its counts since its start, and how many are connected, or not yet counted."""
    command = [program, server, "query", "stats", "a"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return counts_in(done.stdout)


def counts_in(answer: str) -> tuple[dict[str, int] | None, int]:
    """The same from the server's XML; (None, 0) for anything else."""
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
    # Of a link that goes the server counts down `num`, then adds its requests to `ops`, then counts
    # down `att` (XrdLinkXeq::Close): one by `num` alone may lack another's requests.
    return counts, max(int(link.findtext("num", "0")), int(poll.findtext("att", "0")))


def note_spans(iteration: int, answers: Sequence[Mapping[str, Any]]) -> None:
    """Two lines of the attempt's spans.CLIENT; times of answers are CLOCK_MONOTONIC's. None in a
    run that has several clients, each with iterations of its own."""
    if os.environ.get("SY_CLIENTS") != "1":
        return  # each of several clients has times of its own
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
