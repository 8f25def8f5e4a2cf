"""What a user asks for: the resource `steelyard`, and STEELYARD_… variables."""

from base import Refused, as_bytes

RESOURCE = "steelyard"  # what a user asks for, as `steelyard-node job encode` says it
VARIABLES = {
    "STEELYARD_NETEM": "netem",
    "STEELYARD_TAGS": "tag",  # several: with ;
    "STEELYARD_SAMPLE_RATE": "sample-rate",
    "STEELYARD_CACHE": "cache",
}
NETEM_KEYS = (  # those of facts/netem_keys.def
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
    """A value of the request: every byte but the plain ones as %XX."""
    return "".join(chr(c) if c in PLAIN else "%%%02X" % c for c in as_bytes(value))


def unescape(value):
    """What a user wrote as -v A=x\\,y stands so in Variable_List."""
    return str(value).replace("\\,", ",").replace("\\\\", "\\")


def variable_parts(variables):
    """KEY=VALUE parts of what stands in STEELYARD_… variables."""
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
    """The resource `steelyard` of a job, or ''."""
    try:
        return str(job.Resource_List[RESOURCE] or "")
    except Exception:
        return ""


def request_of(job):
    """All that a job asks for: its resource, and variables where that says nothing of the key."""
    own = [part for part in resource(job).split(":") if part]
    said = set(part.split("=")[0] for part in own if not part.startswith("tag="))
    more = [
        p for p in variable_parts(job.Variable_List) if p not in own and p.split("=")[0] not in said
    ]
    return ":".join(own + more)


def has_condition(request):
    """Whether the job must not run unless the request is met; what we do not know is one."""
    keys = set(part.split("=")[0] for part in request.split(":") if part)
    return bool(keys - set(("tag", "sample-rate")))
