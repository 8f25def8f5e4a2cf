"""Shared by all events: the log, the configuration, and steelyard-node."""

import contextlib
import json
import subprocess

import pbs

NODE_OPTIONS = (
    "config",
    "record_dir",
    "run_dir",
    "netem_policy",
    "rate",
    "max_rate",
    "bpf",
    "root",
)
SETTINGS = {
    "node_program": "/usr/local/libexec/steelyard/steelyard-node",
    "protect": [],
    "classic_epilogue": "run",
    "exclusive_by_ncpus": True,
    "check_limit_s": 5,
    "begin_limit_s": 25,
    "end_limit_s": 15,
    "sweep_limit_s": 20,
    "classic_epilogue_limit_s": 30,
}


class Refused(Exception):
    """The job must not run (or be queued); the message is for its user."""


def plain(text):
    """Return one line of ASCII for a log, since a mom's locale is C."""
    one_line = " ".join(str(text).split())
    return one_line.encode("ascii", "backslashreplace").decode("ascii")[:900]


def log(text, job_id=None):
    """Write to the daemon's log; a failure to log is ignored."""
    try:
        if job_id:
            pbs.logjobmsg(job_id, "steelyard: " + plain(text))
        else:
            pbs.logmsg(pbs.EVENT_DEBUG, "steelyard: " + plain(text))
    except Exception:
        pass


def expected(key, value):
    """Return what a setting should be, or None if it is valid.

    An invalid setting would stop a handler in the middle.
    """
    if key.endswith("_limit_s"):
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return None if number and value > 0 else "a number of seconds above 0"
    if key == "protect":
        texts = isinstance(value, list) and all(isinstance(one, str) for one in value)
        return None if texts else "a list of hosts"
    if key == "exclusive_by_ncpus":
        return None if isinstance(value, bool) else "true or false"
    if key == "bpf":
        return None if value in ("yes", "no") else '"yes" or "no"'
    return None if isinstance(value, (str, int, float)) else "a text or a number"


def take(known, key, value):
    """Set a setting; if it is invalid, log that and leave the previous value."""
    allowed = expected(key, value)
    if allowed is None:
        known[key] = value
    else:
        log("config: %s: expected %s, found %r" % (key, allowed, value))


def settings():
    """Return the administrator's settings (qmgr: import hook … application/x-config)."""
    known = dict(SETTINGS)
    name = getattr(pbs, "hook_config_filename", None)
    if not name:
        return known
    try:
        with open(name, encoding="utf-8", errors="replace") as file:
            given = json.load(file)
        for key, value in given.items():
            if key in SETTINGS or key in NODE_OPTIONS:
                take(known, key, value)
            else:
                log(
                    "config: unknown key %s: expected one of %s"
                    % (key, ", ".join(sorted(SETTINGS) + list(NODE_OPTIONS)))
                )
    except Exception as error:
        log("config %s is not used: expected a JSON object, found %s" % (name, error))
    return known


def as_bytes(value):
    """Return an argument as bytes in any locale: the server stores bytes, usually UTF-8."""
    return str(value).encode("utf-8", "surrogateescape").replace(b"\0", b"")


def options(config, names):
    """Return the options of steelyard-node in the configuration."""
    return [
        "--%s=%s" % (name.replace("_", "-"), config[name])
        for name in names
        if config.get(name) is not None
    ]


def node_options(config):
    """Return the options that begin, end and sweep have in common."""
    return options(config, NODE_OPTIONS) + ["--protect=%s" % host for host in config["protect"]]


def run_node(config, arguments, limit_s):
    """Run steelyard-node job; return exit code, stdout, and the last line of stderr.

    The exit code is None if it could not be run or was too slow; then the last value is the reason.
    """
    command = [as_bytes(a) for a in [config["node_program"], "job"] + arguments]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"},
        )
    except OSError as error:
        return None, "", "%s cannot be run: %s" % (config["node_program"], error.strerror)
    try:
        out, err = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        # It may stay in the kernel, on a file system that does not respond.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=1)
        return (
            None,
            "",
            "%s job %s did not answer within %g s"
            % (config["node_program"], arguments[0], limit_s),
        )
    lines = err.decode("utf-8", "replace").strip().splitlines()
    return process.returncode, out.decode("utf-8", "replace"), lines[-1] if lines else ""
