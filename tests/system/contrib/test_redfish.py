"""steelyard-redfish against a BMC of our own: HTTPS on the loopback, answers of tests/data/redfish."""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.system.sampler.conftest import sampler as sampler  # noqa: PLC0414
from tests.waiting import wait_for

ROOT = Path(__file__).parents[3]
READER = ROOT / "contrib/redfish/steelyard_redfish.py"
DATA = ROOT / "tests/data/redfish"
CHASSIS = "/redfish/v1/Chassis"
POWER, ENVIRONMENT = f"{CHASSIS}/1U/Power", f"{CHASSIS}/1U/EnvironmentMetrics"
LOGIN = "reader\nse:cret\n"


def recorded() -> dict[str, Any]:
    names = {CHASSIS: "Chassis", f"{CHASSIS}/1U": "Chassis-1U", POWER: "Power",
             ENVIRONMENT: "EnvironmentMetrics"}  # fmt: skip
    return {path: json.loads((DATA / f"{name}.json").read_text()) for path, name in names.items()}


@dataclass
class Bmc:
    """A BMC with given answers (a document, a status or bytes); it stores the requests."""

    folder: Path
    answers: dict[str, Any] = field(default_factory=recorded)
    asked: list[str] = field(default_factory=list)
    logins: set[str] = field(default_factory=set)
    port: int = 0

    def start(self) -> ThreadingHTTPServer:
        bmc = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                bmc.asked.append(self.path)
                bmc.logins.add(self.headers.get("Authorization", ""))
                answer = bmc.answers.get(self.path, 404)
                status = answer if isinstance(answer, int) else 200
                body = b"" if isinstance(answer, int) else answer
                if isinstance(body, dict):
                    body = json.dumps(body).encode()
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", f"https://127.0.0.1:{bmc.port}/elsewhere")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / "cert.pem", self.folder / "key.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True)
        self.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    def words(self, *more: str) -> list[str]:
        return [
            sys.executable, "-S", str(READER), "--url", f"https://127.0.0.1:{self.port}",
            "--login", str(self.folder / "login"), "--out", str(self.out), *more,
        ]  # fmt: skip

    def read(self, *more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words("--once", *(more or self.trust)),
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    @property
    def trust(self) -> tuple[str, str]:
        return "--ca", str(self.folder / "cert.pem")

    @property
    def out(self) -> Path:
        return self.folder / "root/run/steelyard-meters/redfish/node.meter"

    def written(self) -> dict[str, str]:
        return dict(line.split(" ", 1) for line in self.out.read_text().splitlines())


@pytest.fixture
def bmc(tmp_path: Path) -> Iterator[Bmc]:
    make = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
            "-nodes", "-days", "2", "-subj", "/CN=bmc", "-addext", "subjectAltName=IP:127.0.0.1",
            "-keyout", "key.pem", "-out", "cert.pem")  # fmt: skip
    subprocess.run(make, cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "login").write_text(LOGIN)
    (tmp_path / "login").chmod(0o400)
    found = Bmc(tmp_path)
    found.out.parent.mkdir(parents=True)
    for folder in found.out.parents[:2]:
        folder.chmod(0o755)
    server = found.start()
    yield found
    server.shutdown()
    server.server_close()


def test_it_is_python_of_rhel_8() -> None:
    ast.parse(READER.read_text(), feature_version=(3, 6))


def test_the_watts_of_the_only_chassis_are_written_with_their_time(bmc: Bmc) -> None:
    before = time.monotonic()
    done = bmc.read()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    written = bmc.written()
    assert before <= float(written.pop("at")) <= time.monotonic()
    assert written == {"covers": "node", "watts": "344.000", "period": "5"}
    assert (bmc.out.stat().st_mode & 0o777, list(bmc.out.parent.iterdir())) == (0o644, [bmc.out])
    assert bmc.logins == {"Basic " + base64.b64encode(b"reader:se:cret").decode()}
    assert set(bmc.asked) == {CHASSIS, f"{CHASSIS}/1U", POWER}


def test_where_there_is_no_power_environment_metrics_tell(bmc: Bmc) -> None:
    bmc.answers[POWER] = 404
    assert bmc.read().returncode == 0
    assert bmc.written()["watts"] == "374.000"
    done = bmc.read(*bmc.trust, "--document", ENVIRONMENT)
    assert done.returncode == 0 and bmc.asked[-1] == ENVIRONMENT


def test_from_the_bmc_to_the_record(bmc: Bmc, sampler: Any) -> None:
    reader = subprocess.Popen([*bmc.words(*bmc.trust), "--period", "1"], stderr=subprocess.PIPE)
    try:
        wait_for("a first reading", bmc.out.exists)
        attached = sampler.attach("--root", bmc.folder / "root", "--rate", "10")
        time.sleep(2.2)
        read_before = float(bmc.written()["at"])
        bmc.answers[POWER]["PowerControl"][0]["PowerConsumedWatts"] = 544
        wait_for("another", lambda: bmc.written()["watts"] == "544.000")
        seen = time.monotonic()
        time.sleep(1.2)
        measured_s = time.monotonic() - seen
        record = attached.end()
        ended = time.monotonic()
    finally:
        reader.kill()
        _, said = reader.communicate()
    (zone,) = record["energy"]["zones"]
    assert (zone["meter"], zone["covers"], zone["measures"]) == ("file", "node", "power")
    assert record["energy"]["energy_j"] == zone["energy_j"]
    assert zone["elapsed_s"] >= 2.2 + measured_s
    low, high = 344 * zone["elapsed_s"], 544 * zone["elapsed_s"]
    # 200 W more since they were written at least, and since the reading before they rose at most.
    assert 200 * measured_s < zone["energy_j"] - low < 200 * (ended - read_before)
    assert zone["energy_j"] < high
    assert said == b""


@pytest.mark.parametrize(
    ("path", "answer", "why"),
    [
        (POWER, 401, "HTTP 401"),
        (POWER, 500, "HTTP 500"),
        (POWER, 302, "HTTP 302"),
        (POWER, b"<html>", "no JSON"),
        (POWER, b"\xff\xfe", "no JSON"),
        (POWER, b"[" * 100000, "no JSON"),
        (POWER, b"[]", "no JSON object"),
        (POWER, b" " * (1 << 20) + b"{}", "more than 1048576 bytes"),
        (POWER, {}, "has no power"),
        (POWER, {"PowerControl": [{}]}, "PowerConsumedWatts is null"),
        (POWER, {"PowerControl": [{"PowerConsumedWatts": "344"}]}, 'is "344", and no number'),
        (POWER, {"PowerControl": [{"PowerConsumedWatts": True}]}, "no number"),
        (POWER, {"PowerControl": [{"PowerConsumedWatts": 0}]}, "no power that a node draws"),
        (POWER, b'{"PowerControl": [{"PowerConsumedWatts": NaN}]}', "no power that a node draws"),
        (POWER, b'{"PowerControl": [{"PowerConsumedWatts": 1e999}]}', "no power that a node"),
    ],
)
def test_what_is_no_reading_is_told_in_a_line_and_never_written(
    bmc: Bmc, path: str, answer: Any, why: str
) -> None:
    assert bmc.read(*bmc.trust, "--document", POWER).returncode == 0, "the positive control"
    before = bmc.out.read_text()
    bmc.answers[path] = answer
    done = bmc.read(*bmc.trust, "--document", POWER)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert why in done.stderr
    assert bmc.out.read_text() == before
    assert "/elsewhere" not in bmc.asked


def test_which_of_several_is_asked_for(bmc: Bmc) -> None:
    control = bmc.answers[POWER]["PowerControl"]
    control.append({"Name": "Processors", "PowerConsumedWatts": 150})
    done = bmc.read()
    assert done.returncode == 2 and "0 Input of the node, 1 Processors" in done.stderr
    assert bmc.read(*bmc.trust, "--entry", "1").returncode == 0
    assert bmc.written()["watts"] == "150.000"
    assert bmc.read(*bmc.trust, "--entry", "2").returncode == 2
    bmc.answers[CHASSIS]["Members"].append({"@odata.id": f"{CHASSIS}/2U"})
    bmc.answers[f"{CHASSIS}/2U"] = {"Power": {"@odata.id": ENVIRONMENT}}
    done = bmc.read(*bmc.trust, "--entry", "0")
    assert done.returncode == 2 and f"--document: {POWER}, {ENVIRONMENT}" in done.stderr


def test_who_is_not_the_bmc_hears_no_password(bmc: Bmc) -> None:
    der = ssl.PEM_cert_to_DER_cert((bmc.folder / "cert.pem").read_text())
    own = hashlib.sha256(der).hexdigest()
    for trust in ((("--document", POWER)), ("--fingerprint", "0" * 64)):
        done = bmc.read(*trust)
        assert done.returncode == 1 and "certificate" in done.stderr, done.stderr
    done = bmc.read("--ca", str(bmc.folder / "cert.pem"), "--url", f"https://localhost:{bmc.port}")
    assert done.returncode == 1 and "certificate" in done.stderr, done.stderr
    assert (bmc.asked, bmc.logins, bmc.out.exists()) == ([], set(), False)
    colons = ":".join(own[i : i + 2] for i in range(0, 64, 2)).upper()
    assert bmc.read("--fingerprint", colons).returncode == 0
    assert bmc.out.exists()


def test_what_was_asked_wrongly_ends_it_with_a_line(bmc: Bmc) -> None:
    def refused(*words: str) -> str:
        done = bmc.read(*bmc.trust, *words)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        return done.stderr

    assert "expected https://" in refused("--url", f"http://127.0.0.1:{bmc.port}")
    assert "1 to 60" in refused("--period", "0")
    assert "64 hexadecimal" in refused("--fingerprint", "12")
    assert "No such file" in refused("--ca", str(bmc.folder / "none"))
    assert "No such file" in refused("--login", str(bmc.folder / "none"))
    (bmc.folder / "login").chmod(0o640)
    assert "chmod 400" in refused()
    (bmc.folder / "login").chmod(0o600)
    (bmc.folder / "login").write_text("reader\n")
    assert "two lines" in refused()
    assert not bmc.asked


def test_a_bmc_that_is_away_is_told_once_and_its_return_too(bmc: Bmc) -> None:
    bmc.answers[POWER] = 503
    errors = (bmc.folder / "errors").open("wb")
    words = [*bmc.words(*bmc.trust, "--document", POWER), "--period", "1"]
    with subprocess.Popen(words, stderr=errors) as reader:
        wait_for("three attempts", lambda: bmc.asked.count(POWER) >= 3)
        bmc.answers[POWER] = recorded()[POWER]
        wait_for("a reading", bmc.out.exists)
        wait_for("its word", lambda: b"again" in (bmc.folder / "errors").read_bytes())
        reader.kill()
    errors.close()
    first, second = (bmc.folder / "errors").read_text().splitlines()
    assert "HTTP 503" in first and second.endswith("it reports its power again")
