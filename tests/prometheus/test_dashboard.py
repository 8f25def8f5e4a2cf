"""The metrics in a real Prometheus: it reads the file.

Every query of the Grafana dashboard returns the sums of `steelyard top` for the same jobs. Two
states of a database an hour apart are imported as three hours of scrapes; one more file is scraped
over HTTP unchanged.
"""

from __future__ import annotations

import functools
import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis.cluster.collect import collect
from steelyard.analysis.cluster.prometheus_metrics import SAMPLE
from steelyard.analysis.cluster.top import sum_top
from steelyard.analysis.sources.cluster_sacct import ClusterSacct
from steelyard.wrappers.commands import cli

from ..unit.cluster.sacct_lab import NOW, Lab
from ..waiting import wait_for

ROOT = Path(__file__).parents[2]
DASHBOARD = json.loads((ROOT / "contrib/grafana/cluster.json").read_text(encoding="utf-8"))
BUILT = ROOT / "build/prometheus/usr/bin"
HOUR_S, STEP_S = 3600, 60
FILE = "steelyard.prom"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Every second a scrape: no line for each."""

    def log_message(self, *words: object) -> None:
        """Log nothing."""


def program(name: str) -> str:
    found = shutil.which(name, path=f"{BUILT}:{os.environ['PATH']}")
    if found is None:
        pytest.skip(f"no {name}: `tests/run.sh prometheus` fetches it (apt-get download, 19 MB)")
    return found


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Two states of the same database: BEFORE.prom, and then steelyard.prom."""
    made = Lab(tmp_path_factory.mktemp("prometheus"))
    before = os.environ["PATH"]
    os.environ["PATH"] = made.environment["PATH"]
    made.record("1", made.job("1", 2 * HOUR_S, 100))
    made.record("2", made.job("2", 2 * HOUR_S, 60, User="bob", Account="chem", Partition="gpu"))
    state(made, NOW - 3700)
    shutil.copy(made.base / FILE, made.base / "before.prom")
    made.record("3", made.job("3", 1000, 300))
    made.record("4", made.job("4", 900, 200, User="eve", Account="bio", Partition="gpu"))
    made.job("5", 800, 40, User="bob", Account="chem", TotalCPU="")
    state(made, NOW)
    yield made
    os.environ["PATH"] = before


def state(lab: Lab, now: float) -> None:
    collect(lab.dir, ClusterSacct(), [lab.records], now=lambda: now, since_unix_s=now - 4 * HOUR_S)
    assert cli.main(["metrics", "--database", str(lab.dir), str(lab.base / FILE), "--users"]) == 0


def history(lab: Lab, end: int) -> str:
    """Three hours in OpenMetrics: the first state, and for the last hour the second."""
    lines: dict[str, list[str]] = {}
    for name, first, last in (
        ("before", end - 3 * HOUR_S, end - HOUR_S),
        ("steelyard", end - HOUR_S, end),
    ):
        for line in (lab.base / f"{name}.prom").read_text(encoding="utf-8").splitlines():
            if match := SAMPLE.fullmatch(line):
                times = range(first + STEP_S, last + STEP_S, STEP_S)
                lines.setdefault(match[1], []).extend(f"{line} {at}" for at in times)
    return "".join(f"{line}\n" for family in lines.values() for line in family) + "# EOF\n"


@pytest.fixture(scope="module")
def server(lab: Lab) -> Iterator[tuple[str, int]]:
    """A Prometheus with that history, which also scrapes the file; its address and the end."""
    end = int(time.time()) // STEP_S * STEP_S - 2 * HOUR_S
    (lab.base / "history.om").write_text(history(lab, end), encoding="utf-8")
    made = subprocess.run(
        [program("promtool"), "tsdb", "create-blocks-from", "openmetrics", "history.om", "data"],
        cwd=lab.base, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    handler = functools.partial(Quiet, directory=str(lab.base))
    files = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=files.serve_forever, daemon=True).start()
    config = {
        "scrape_configs": [{
            "job_name": "node", "scrape_interval": "1s", "metrics_path": f"/{FILE}",
            "static_configs": [{"targets": [f"127.0.0.1:{files.server_port}"]}],
        }]
    }  # fmt: skip
    (lab.base / "prometheus.yml").write_text(json.dumps(config), encoding="utf-8")
    port = free_port()
    with (lab.base / "log").open("w") as log:
        daemon = subprocess.Popen(
            [program("prometheus"), "--config.file=prometheus.yml", "--storage.tsdb.path=data",
             f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=10y"],
            cwd=lab.base, stderr=log,
        )  # fmt: skip
    try:
        wait_for("Prometheus", lambda: answers(port), seen=lambda: (lab.base / "log").read_text())
        yield f"127.0.0.1:{port}", end
    finally:
        daemon.terminate()
        daemon.wait()
        files.shutdown()
        files.server_close()


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=5) as page:
            return bool(page.status == 200)
    except OSError:
        return False


def ask(server: tuple[str, int], expr: str, at: float | None = None) -> dict[str, float]:
    """Return the values of a query by their labels."""
    words = urllib.parse.urlencode({"query": expr, "time": server[1] if at is None else at})
    with urllib.request.urlopen(f"http://{server[0]}/api/v1/query?{words}", timeout=30) as page:
        document = json.load(page)
    assert document["status"] == "success", document
    return {
        ",".join(v for k, v in sorted(one["metric"].items()) if k != "__name__"): float(
            one["value"][1]
        )
        for one in document["data"]["result"]
    }


def queries() -> list[tuple[str, str]]:
    """Return title and expression of every panel's targets."""
    return [(p["title"], t["expr"]) for p in DASHBOARD["panels"] for t in p["targets"]]


def filled(expr: str) -> str:
    """As Grafana fills it in, for the last two hours of the history."""
    return expr.replace("$__range", f"{2 * HOUR_S}s").replace("$cluster", "c")


def grown(lab: Lab, by: str, quantity: str) -> dict[str, float]:
    """What `top` has of the jobs that ended between the two states."""
    lines = sum_top(lab.dir, by, NOW - 3700, NOW).lines
    return {line.name: line.values[quantity] or 0.0 for line in lines}


def test_promtool_finds_nothing_amiss(lab: Lab) -> None:
    text = (lab.base / FILE).read_text(encoding="utf-8")
    done = subprocess.run(
        [program("promtool"), "check", "metrics"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_it_is_scraped_as_it_is(lab: Lab, server: tuple[str, int]) -> None:
    expr = 'steelyard_user_energy_joules_total{job="node"}'
    found = wait_for("a scrape", lambda: ask(server, f"sum by (username) ({expr})", time.time()))
    assert found == {"ada": 247.0, "bob": 123.5, "eve": 123.5}


@pytest.mark.parametrize(
    ("title", "expr"), queries(), ids=lambda text: re.sub(r"\W+", "-", text)[:40]
)
def test_every_query_has_an_answer(server: tuple[str, int], title: str, expr: str) -> None:
    assert "$" not in filled(expr)
    assert ask(server, filled(expr)), title


@pytest.mark.parametrize(
    ("title", "place", "by", "quantity", "scale"),
    [
        ("Energy", 0, None, "energy_j", 1.0),
        ("CPU time used", 0, None, "cpu_s", 1.0),
        ("Mean power of ended jobs, by account", 0, "account", "energy_j", HOUR_S),
        ("To and from storage, by partition", 0, "partition", "read_bytes", HOUR_S),
        ("To and from storage, by partition", 1, "partition", "write_bytes", HOUR_S),
        ("Users", 1, "user", "energy_j", 1.0),
        ("Users", 3, "user", "cpu_s", 1.0),
        ("Users", 4, "user", "cpu_unused_s", 1.0),
        ("Users", 5, "user", "memory_unused_byte_s", 1.0),
        ("Accounts", 1, "account", "energy_j", 1.0),
        ("CPU time unused: the ten largest users", 0, "user", "cpu_unused_s", 1.0),
        ("CPU time by node type", 0, "node-type", "cpu_s", 1.0),
    ],
)
def test_an_answer_is_what_top_says(
    lab: Lab,
    server: tuple[str, int],
    title: str,
    place: int,
    by: str | None,
    quantity: str,
    scale: float,
) -> None:
    expr = [expr for found, expr in queries() if found == title][place]
    found = {name: value for name, value in ask(server, filled(expr)).items() if value}
    wanted = grown(lab, by or "user", quantity)
    if by is None:
        wanted = {"": sum(wanted.values())}
    wanted = {name: value / scale for name, value in wanted.items() if value}
    assert wanted and found == pytest.approx(wanted, rel=1e-9)


def test_shares_and_age(lab: Lab, server: tuple[str, int]) -> None:
    by_title: dict[str, Any] = dict(queries())
    known = ask(server, filled(by_title["Jobs whose joules are known"]))
    assert known == {"": pytest.approx(2 / 3)}
    # 300 s and 200 s on 2 CPUs, 5 s of each used.
    unused = ask(server, filled(by_title["Of the CPU time held, unused"]))
    assert unused == {"": pytest.approx(990 / 1000)}
    age = ask(server, filled(by_title["Collected"]))
    assert age == {"": pytest.approx(server[1] - NOW)}
