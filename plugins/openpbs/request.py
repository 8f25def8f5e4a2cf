"""The user's request: the resource `steelyard`, and STEELYARD_… variables."""

from base import Refused, as_bytes

RESOURCE = "steelyard"  # the request in the encoding of `steelyard-node job encode`
VARIABLES = {
    "STEELYARD_NETEM": "netem",
    "STEELYARD_TAGS": "tag",  # several are separated by ;
    "STEELYARD_SAMPLE_RATE": "sample-rate",
    "STEELYARD_CACHE": "cache",
}
NETEM_KEYS = (  # those in facts/netem_keys.def
    "corrupt",
    "delay",
    "dev",
    "direction",
    "duplicate",
    "ecn",
    "limit",
    "loss",
    "port",
    "rate",
    "reorder",
    "rto_min",
    "seed",
    "sites",
    "slot",
    "to",
    "trace",
)
PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"


def encode(value):
    """Encode a value of the request: every byte except plain ones as %XX."""
    return "".join(chr(c) if c in PLAIN else "%%%02X" % c for c in as_bytes(value))


def unescape(value):
    """Remove the escapes of `-v A=x\\,y`, which Variable_List contains unchanged."""
    return str(value).replace("\\,", ",").replace("\\\\", "\\")


def variable_parts(variables):
    """Return KEY=VALUE parts of the STEELYARD_… variables.

    Raises Refused if qsub ended a condition at a comma.
    """
    parts = []
    before = None
    for name, value in (variables or {}).items():
        if before == "STEELYARD_NETEM" and name in NETEM_KEYS:
            raise Refused(
                "-v STEELYARD_NETEM=%s,%s=%s: qsub ends a variable at a comma: write '\\,' for it"
                % (variables["STEELYARD_NETEM"], name, value)
            )
        before = name
        key = VARIABLES.get(name)
        if key and str(value):
            values = unescape(value).split(";") if key == "tag" else [unescape(value)]
            parts += ["%s=%s" % (key, encode(one)) for one in values if one]
    return parts


def resource(job):
    """Return the resource `steelyard` of a job, or ''."""
    try:
        return str(job.Resource_List[RESOURCE] or "")
    except Exception:
        return ""


def request_of(job):
    """Return a job's complete request: its resource, and variables for other keys."""
    own = [entry for entry in resource(job).split(":") if entry]
    keys = set(entry.split("=")[0] for entry in own if not entry.startswith("tag="))
    more = [
        p for p in variable_parts(job.Variable_List) if p not in own and p.split("=")[0] not in keys
    ]
    return ":".join(own + more)


def has_condition(request):
    """Whether the job must not run unless the request is met; unknown keys count as conditions."""
    keys = set(entry.split("=")[0] for entry in request.split(":") if entry)
    return bool(keys - set(("tag", "sample-rate")))
