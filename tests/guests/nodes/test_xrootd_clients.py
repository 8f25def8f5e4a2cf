"""1, 5 and 10 clients of one XRootD server, near and far: Kommeri's three blades in small.

The truth is the server's: the opens in its log, and the bytes that it counts as sent.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.guests.nodes.netem_guests import address
from tests.throwaway_lab import Lab, until

from steelyard.jobscripts.hep import input_files
from steelyard.wrappers.cluster.cluster_config import Layout

RECIPE = {"structure": "jagged", "compression": "zlib", "events": 16000, "cluster": 2000, "seed": 1}
CLIENTS = (1, 5, 10)
DELAYS_S = {"v1": 0.01, "v2": 0.2}  # sent by each guest, which has its own server, to n1
# Of a copy: connecting, login, opening and reading, then TCP's slow start until 1.5 MB are there.
TRIPS_LEAST, TRIPS_MOST = 6, 25
FOLDER = "/tmp/steelyard-test-xrootd"  # in a guest's memory
CONFIG = f"""\
xrd.port 1094
xrd.network nodnr
all.export / r/o nolock
oss.localroot {FOLDER}/data
all.adminpath {FOLDER}
all.pidpath {FOLDER}
ofs.trace open
"""
STUDY = """
[study]
name = "blades"
repeat = 1
[job]
nodes = 1
constraint = "physical"
exclusive = true
time_limit = "00:02:00"
[factors]
clients = {clients}
url = {urls}
[[benchmark]]
use = "xrootd"
mode = "xrdcp"
{recipe}
"""


def in_guest(lab: Lab, name: str, script: str, *words: str) -> str:
    done = lab.cluster.find_guest(name).run(["sh", "-euc", script, "sh", *words], timeout_s=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def far_server(lab: Lab, name: str) -> Iterator[None]:
    """An XRootD server on a guest, and its delay towards n1; both gone afterwards."""
    node = str(Layout(lab.cluster.dir).lib_dir / "steelyard-node")
    to = address(lab.cluster, "n1")
    spec = f"delay={DELAYS_S[name] * 1e3:g}ms,to={to}"
    whose = f"--run-dir={FOLDER}/run --node={name} --job-id=1"
    begin = f"""
        mkdir -m 755 {FOLDER} && cp -r "$1" {FOLDER}/data && printf %s "$2" >{FOLDER}/cf
        chmod -R a+rX {FOLDER}/data && chown nobody {FOLDER}
        "$3" netem apply {whose} --uid=0 --no-policy --peer={to} -- "$4"
        setsid xrootd -R nobody -c {FOLDER}/cf >>{FOLDER}/log 2>&1 </dev/null &
        echo $! >{FOLDER}/pid"""
    try:
        in_guest(lab, name, begin, str(lab.work / "data"), CONFIG, node, spec)
        until(lambda: "initialization completed" in log(lab, name), "xrootd listens")
        yield
    finally:
        end = f'kill $(cat {FOLDER}/pid) || :; "$1" netem finish {whose}; rm -rf {FOLDER}'
        in_guest(lab, name, end, node)


def log(lab: Lab, name: str) -> str:
    return in_guest(lab, name, f"cat {FOLDER}/log")


def sessions(lab: Lab, name: str) -> list[int]:
    """Return how many clients opened the file in each run.

    A run begins with the file's note; runs do not overlap.
    """
    runs: list[set[str]] = []
    for who, note in re.findall(r"(\S+) ofs_open: \S+ fn=\S+?\.root(\.json)?\n", log(lab, name)):
        if note:
            runs.append(set())
        else:
            runs[-1].add(who)
    return [len(run) for run in runs]


def sent(lab: Lab, name: str) -> int:
    """Bytes, by the server's own count, when all clients have gone."""

    def quiet() -> Any:
        text = in_guest(lab, name, "xrdfs 127.0.0.1:1094 query stats l").strip(" \n\0")
        link = xml.etree.ElementTree.fromstring(text).find("stats[@id='link']")
        assert link is not None, text
        return link if link.findtext("num") == "1" else None  # our own

    return int(until(quiet, "the clients have gone").findtext("out"))


def submit(lab: Lab, urls: Mapping[str, str]) -> None:
    recipe = "".join(f"{key} = {RECIPE[key]}\n" for key in ("events", "cluster"))
    text = STUDY.format(clients=list(CLIENTS), urls=list(urls.values()), recipe=recipe)
    (lab.work / "blades.toml").write_text(text, encoding="utf-8")
    lab.steelyard("submit", "blades.toml")
    until(lambda: not lab.queued(), "all runs are over", limit_s=200)
    lab.collect("blades.toml")


@dataclass(frozen=True)
class Run:
    """Return a collected run."""

    clients: int  # of its condition
    node: str  # where its server was
    figures: Mapping[str, list[float]]


def runs_of(lab: Lab, urls: Mapping[str, str]) -> list[Run]:
    """Return the runs in the order of execution."""
    sql = (
        "SELECT (condition->>'clients')::int, condition->>'url', metric, list(value) FROM runs "
        "JOIN attempts USING (run_id, attempt, state) JOIN results USING (run_id, attempt) "
        "WHERE state = 'completed' GROUP BY ALL ORDER BY any_value(start_unix_s)"
    )
    found: dict[tuple[int, str], dict[str, list[float]]] = {}
    for clients, url, metric, values in lab.rows("blades", sql):
        found.setdefault((clients, url), {})[metric] = values
    names = {url: name for name, url in urls.items()}
    return [Run(clients, names[url], figures) for (clients, url), figures in found.items()]


def test_what_1_5_and_10_clients_got_is_what_the_server_gave(virtual_lab: Lab) -> None:
    lab = virtual_lab
    known = input_files.keep_file(lab.work / "data", RECIPE)
    urls = {name: f"root://{address(lab.cluster, name)}//{known['file']}" for name in DELAYS_S}
    with far_server(lab, "v1"), far_server(lab, "v2"):
        submit(lab, urls)
        runs = runs_of(lab, urls)
        for name in DELAYS_S:
            counts = [run.clients for run in runs if run.node == name]
            assert sorted(counts) == list(CLIENTS)
            assert sessions(lab, name) == counts
            least = sum(CLIENTS) * known["bytes"]
            # A checksum of 4 bytes for each 4 KB, headers, and three times the note.
            assert least < sent(lab, name) < 1.005 * least
    for run in runs:
        (size,), own_s = run.figures["bytes_read"], run.figures["client_seconds"]
        assert (len(own_s), size) == (run.clients, run.clients * known["bytes"])
        (rtt_s,), delay_s = run.figures["rtt_s"], DELAYS_S[run.node]
        assert delay_s <= rtt_s < delay_s + 0.05
        assert min(own_s) > TRIPS_LEAST * delay_s
    nodes = "SELECT DISTINCT value FROM tags WHERE key = 'client_nodes'"
    assert lab.rows("blades", nodes) == [("n1",)]
    for clients in CLIENTS:
        least_s = {r.node: min(r.figures["client_seconds"]) for r in runs if r.clients == clients}
        longer_s = DELAYS_S["v2"] - DELAYS_S["v1"]
        assert 0 < least_s["v2"] - least_s["v1"] < TRIPS_MOST * longer_s
