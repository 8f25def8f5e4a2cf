#!/usr/bin/env python3
"""Read this node's power from its BMC by Redfish, and write it to a file for samplers.

It is a separate process of an unprivileged user: samplers run as root and have no HTTP client. It
needs Python 3.6 or later, and nothing else. docs/sampler.md, "A meter of your own", describes the
file that it writes.
"""

import argparse
import base64
import hashlib
import http.client
import json
import math
import os
import ssl
import stat
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

TIMEOUT_S = 10
MOST_BYTES = 1 << 20
SERVICE = "/redfish/v1/Chassis"


class Trouble(Exception):
    """An error that the next reading may not have; the message is one line for the log."""


class Wrong(Exception):
    """A wrong option, which no later reading corrects; the message is one line."""


class Bmc:
    """A connection to the BMC that stays open; it reads documents with GET."""

    def __init__(self, url, login, ca, fingerprint):
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.hostname or parts.path.strip("/"):
            raise Wrong(f"--url '{url}': expected https://HOST[:PORT]")
        context = ssl.create_default_context(cafile=ca)
        if fingerprint:  # it identifies this certificate, whoever signed it
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        self.fingerprint = fingerprint
        self.connection = http.client.HTTPSConnection(
            parts.hostname, parts.port or 443, timeout=TIMEOUT_S, context=context
        )
        token = base64.b64encode(":".join(login).encode()).decode()
        self.headers = {"Authorization": f"Basic {token}", "Accept": "application/json"}

    def connect(self):
        """Connect, and check the certificate before the password is sent."""
        self.connection.connect()
        found = hashlib.sha256(self.connection.sock.getpeercert(True)).hexdigest()
        if self.fingerprint and found != self.fingerprint:
            raise Trouble(f"its certificate is another one: SHA-256 {found}")

    def request(self, path):
        if self.connection.sock is None:
            self.connect()
        self.connection.request("GET", path, headers=self.headers)
        answer = self.connection.getresponse()
        text = answer.read(MOST_BYTES + 1)
        if answer.status != 200:
            raise Trouble(f"{path}: HTTP {answer.status} {answer.reason}"[:200])
        if len(text) > MOST_BYTES:
            raise Trouble(f"{path}: more than {MOST_BYTES} bytes")
        try:
            document = json.loads(text.decode())
        except (ValueError, RecursionError):
            raise Trouble(f"{path}: no JSON") from None
        if not isinstance(document, dict):
            raise Trouble(f"{path}: no JSON object")
        return document

    def get(self, path):
        try:
            return self.request(path)
        except Trouble:
            self.connection.close()
            raise
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            raise Trouble(f"{self.connection.host}: {str(error) or type(error).__name__}") from None


def number(value, what):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Trouble(f"{what} is {json.dumps(value)[:40]}, and no number")
    if not math.isfinite(value) or not 0 < value < 1e6:
        raise Trouble(f"{what} is {value}: no power that a node draws")
    return float(value)


def power_w(document, entry):
    """Return the power in W of a document of schema Power or EnvironmentMetrics (DMTF DSP0268)."""
    controls = document.get("PowerControl")
    if isinstance(controls, list) and controls:
        names = [str(one.get("Name")) if isinstance(one, dict) else "?" for one in controls]
        if entry is None and len(controls) > 1:
            choices = ", ".join(f"{index} {name}" for index, name in enumerate(names))
            raise Wrong(f"PowerControl has several, say which by --entry: {choices}")
        if (entry or 0) >= len(controls) or not isinstance(controls[entry or 0], dict):
            raise Wrong(f"PowerControl has no entry {entry or 0}")
        return number(controls[entry or 0].get("PowerConsumedWatts"), "PowerConsumedWatts")
    reading = document.get("PowerWatts")
    if isinstance(reading, dict):
        return number(reading.get("Reading"), "PowerWatts")
    raise Trouble("the document has no power: neither PowerControl nor PowerWatts")


def link(document, name):
    """Return a link's path on the same BMC, or None."""
    target = document.get(name)
    path = target.get("@odata.id") if isinstance(target, dict) else None
    return path if isinstance(path, str) and path.startswith("/") else None


def telling(bmc, chassis, entry):
    """Return the path of a chassis' document that has its power, or None."""
    document = bmc.get(chassis)
    for name in ("Power", "EnvironmentMetrics"):
        path = link(document, name)
        try:
            if path and power_w(bmc.get(path), entry):
                return path
        except Trouble:
            continue
    return None


def find(bmc, entry):
    members = bmc.get(SERVICE).get("Members")
    paths = [link({"it": one}, "it") for one in members] if isinstance(members, list) else []
    found = [path for path in (telling(bmc, one, entry) for one in paths if one) if path]
    if not found:
        raise Trouble(f"no chassis below {SERVICE} reports its power")
    if len(found) > 1:
        raise Wrong(f"say which is this node's by --document: {', '.join(found)}")
    return found[0]


def write(out, covers, watts, at_s, period_s):
    """Replace the file atomically, so that readers never see half of it."""
    new = out.with_name(f".{out.name}.new")
    with new.open("w", encoding="ascii") as file:
        os.fchmod(file.fileno(), 0o644)
        file.write(f"covers {covers}\nwatts {watts:.3f}\nat {at_s:.6f}\nperiod {period_s:g}\n")
    new.replace(out)


def read_login(path):
    """Return user and password, a line each, of a private file."""
    try:
        info = Path(path).stat()
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Wrong(f"--login {path}: {getattr(error, 'strerror', None) or 'no UTF-8'}") from None
    if stat.S_IMODE(info.st_mode) & 0o077:
        raise Wrong(f"--login {path}: others may read it: chmod 400 {path}")
    lines = text.splitlines()
    if len(lines) != 2 or not all(lines) or ":" in lines[0]:
        raise Wrong(f"--login {path}: expected two lines, user and password")
    return lines


def parsed(arguments):
    parser = argparse.ArgumentParser(
        prog="steelyard-redfish", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--url", required=True, help="https://HOST[:PORT] of the BMC")
    parser.add_argument(
        "--login", required=True, metavar="FILE", help="two lines, user and password; mode 0400"
    )
    parser.add_argument(
        "--ca", metavar="FILE", help="who signed its certificate (PEM); default: the system's"
    )
    parser.add_argument(
        "--fingerprint", metavar="HEX", help="SHA-256 of its certificate, in place of --ca"
    )
    parser.add_argument(
        "--document",
        metavar="PATH",
        help="/redfish/v1/Chassis/ID/Power, or …/EnvironmentMetrics; default: of the only chassis",
    )
    parser.add_argument("--entry", type=int, metavar="N", help="of several in PowerControl, from 0")
    parser.add_argument("--covers", default="node", help="what of the node it is (node)")
    parser.add_argument("--period", type=float, default=5.0, metavar="S", help="1 to 60 (5)")
    parser.add_argument(
        "--out",
        required=True,
        type=Path,
        metavar="FILE",
        help="/run/steelyard-meters/FOLDER/NAME.meter",
    )
    parser.add_argument("--once", action="store_true", help="one reading, then end")
    options = parser.parse_args(arguments)
    if not 1 <= options.period <= 60:
        raise Wrong("--period: expected 1 to 60 s")
    if options.entry is not None and options.entry < 0:
        raise Wrong("--entry: expected 0 or more")
    if options.fingerprint:
        options.fingerprint = options.fingerprint.replace(":", "").lower()
        if len(options.fingerprint) != 64 or set(options.fingerprint) - set("0123456789abcdef"):
            raise Wrong(
                "--fingerprint: expected 64 hexadecimal digits (openssl x509 -noout -fingerprint -sha256)"
            )
    return options


def read_once(bmc, options):
    if not options.document:
        options.document = find(bmc, options.entry)
    before = time.monotonic()
    document = bmc.get(options.document)
    after = time.monotonic()
    watts = power_w(document, options.entry)
    try:
        write(options.out, options.covers, watts, (before + after) / 2, options.period)
    except OSError as error:
        raise Trouble(f"{options.out}: {error.strerror}") from None


def print_message(text):
    print(f"steelyard-redfish: {text}", file=sys.stderr, flush=True)


def run(bmc, options):
    """Read repeatedly; print one line when an error begins, and one when it ends.

    Returns 0, or 1 if the last reading failed.
    """
    reported, due = "", time.monotonic()
    while True:
        try:
            read_once(bmc, options)
            if reported:
                print_message("it reports its power again")
            reported = ""
        except Trouble as trouble:
            if str(trouble) != reported:
                print_message(trouble)
            reported = str(trouble)
        if options.once:
            return 1 if reported else 0
        now = time.monotonic()
        due = max(due + options.period, now)
        time.sleep(due - now)


def main(arguments=None):
    try:
        options = parsed(arguments)
        try:
            bmc = Bmc(options.url, read_login(options.login), options.ca, options.fingerprint)
        except (OSError, ValueError) as error:
            raise Wrong(f"--ca {options.ca}: {error}") from None
        return run(bmc, options)
    except Wrong as wrong:
        print_message(wrong)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
