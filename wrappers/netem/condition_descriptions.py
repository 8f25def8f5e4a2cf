"""Descriptions of network conditions: of a specification, and of the document of docs/formats.md
part 9."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

from steelyard.facts.netem_keys import VALUES, Value
from steelyard.wrappers.base import console

Spec = Mapping[str, object]
DIRECTIONS = {
    "egress": "outgoing packets only (a round trip meets it once)",
    "ingress": "incoming packets only (a round trip meets it once)",
    "both": "outgoing and incoming packets (a round trip meets it twice)",
}


def describe_parts(spec: Spec) -> list[str]:
    """Describe each field of a specification in one phrase; an empty specification has one, too."""
    found = [v.words.format(format_value(v, spec)) for v in VALUES if v.words and v.json in spec]
    return found or ["nothing is touched"]


def format_value(value: Value, spec: Spec) -> str:
    """Format one value by its kind."""
    found = spec[value.json]
    if value.json == "delay_s":
        return format_delay(spec)
    if value.kind in ("TIME", "WHOLE_MS"):
        return format_seconds(found)
    if value.kind == "PERCENT":
        return format_percent(found)
    if value.kind == "RATE":
        return format_rate(read_number(found))
    if isinstance(found, dict):
        return FORMATTERS[value.id](found)
    return DIRECTIONS.get(str(found), format_list(found))


def format_delay(spec: Spec) -> str:
    """Return, for example, `50 ms ± 5 ms (normal distribution)`."""
    text = format_seconds(spec["delay_s"])
    if spec.get("jitter_s"):
        shape = spec.get("distribution", "uniform")
        text += f" ± {format_seconds(spec['jitter_s'])} ({shape} distribution)"
    return text


def format_gemodel(model: Spec) -> str:
    """Format the four probabilities under their names in tc-netem(8)."""
    names = {"p": "p", "r": "r", "one_minus_h": "1-h", "one_minus_k": "1-k"}
    return ", ".join(f"{names[key]} {format_percent(model[key])}" for key in names if key in model)


def format_loss_state(model: Spec) -> str:
    """Format the five probabilities of the four-state Markov chain."""
    return ", ".join(f"{key} {format_percent(chance)}" for key, chance in model.items())


def format_overhead(found: Spec) -> str:
    """Return, for example, `+24 bytes, in cells of 48 bytes and 5 more`."""
    text = f"{read_number(found['packet_bytes']):+.0f} bytes"
    if found["cell_bytes"]:
        text += f", in cells of {found['cell_bytes']} bytes and {found['cell_overhead_bytes']} more"
    return text


def format_slot(found: Spec) -> str:
    """Return, for example, `every 10 ms to 20 ms, at most 32 packets each`."""
    text = f"every {format_seconds(found['min_s'])}"
    if found.get("distribution"):
        text = f"every {format_seconds(found['mean_s'])} ± {format_seconds(found['jitter_s'])}"
        text += f" ({found['distribution']})"
    elif found["max_s"] != found["min_s"]:
        text += f" to {format_seconds(found['max_s'])}"
    most = [f"{found[what]} {what}" for what in ("packets", "bytes") if found[what]]
    return text + (f", at most {' and '.join(most)} each" if most else "")


FORMATTERS: Mapping[str, Callable[[Spec], str]] = {
    "gemodel": format_gemodel,
    "state": format_loss_state,
    "overhead": format_overhead,
    "slot": format_slot,
}


def format_rate(bit_per_s: float) -> str:
    """Return, for example, `100 Mbit/s`."""
    for unit, size in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if bit_per_s >= size:
            return f"{bit_per_s / size:g} {unit}"
    return f"{bit_per_s:g} bit/s"


def format_percent(fraction: object) -> str:
    """Return, for example, `0.1 %` for 0.001."""
    return f"{read_number(fraction) * 100:.6g} %"


def format_seconds(value: object) -> str:
    """Format a time with its unit; 0 is `0 ms`, the delay of a baseline."""
    return console.format_seconds(read_number(value)) if value else "0 ms"


def read_number(value: object) -> float:
    """Return a number of a JSON document; NaN for any other value."""
    return float(value) if isinstance(value, int | float) else float("nan")


def format_list(value: object) -> str:
    """Return, for example, `a or b`."""
    return " or ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def format_document(document: Spec) -> Iterator[str]:
    """Describe an applied condition in lines: requested, applied, measured, and whether it is
    valid."""
    yield f"requested {document.get('requested') or 'not known'}"
    yield f"applied   {document.get('applied') or 'not known'}{format_devices(document)}"
    yield from format_sites(document)
    if format_round_trips(document):
        yield f"measured  round trip to {document.get('peer')}: {format_round_trips(document)}"
    elif missing_round_trip_reason(document) and not read_links(document):
        yield f"measured  no round trip: {missing_round_trip_reason(document)}"
    for chance in ("loss", "duplicate", "corrupt", "reorder"):
        found = document.get(chance)
        if isinstance(found, dict):
            yield f"measured  {chance} {format_share(found)}"
    notes = document.get("notes")
    for note in notes if isinstance(notes, list) else []:
        yield f"note      {note}"
    if document.get("valid") is False:
        yield f"NOT VALID {document.get('invalid_reason') or 'no reason given'}"
    if document.get("undone") is False:
        yield "NOT UNDONE: `steelyard netem show` lists what is in force, `steelyard netem clear` removes it"


def read_links(document: Spec) -> list[Spec]:
    """Return the documents of the links that begin at this node's site; [] without sites."""
    found = document.get("sites")
    several = found.get("links") if isinstance(found, dict) else None
    return [one for one in several if isinstance(one, dict)] if isinstance(several, list) else []


def format_sites(document: Spec) -> Iterator[str]:
    """Describe the node's site with its file, then each link: applied, measured, and whether it is
    valid."""
    found = document.get("sites")
    if not isinstance(found, dict):
        return
    yield f"site      {found.get('here')}, by {found.get('name')}.sites ({found.get('sha256')})"
    for one in read_links(document):
        measured = (
            format_round_trips(one)
            or f"no round trip: {missing_round_trip_reason(one) or 'not known'}"
        )
        peer = f"to {one.get('peer')} " if one.get("peer") else ""
        bad = "" if one.get("valid") is not False else f"; NOT VALID: {one.get('invalid_reason')}"
        yield f"to {one.get('to_site')}: {one.get('applied')}: {peer}{measured}{bad}"


def format_owner(state: Spec) -> str:
    """Return, for example, `job 4711 on n1, of user 1000, since 2026-01-31 12:03:04`; a stale state
    is marked."""
    text = f"job {state.get('job_id')} on {state.get('node')}, of user {state.get('user_id')}"
    if isinstance(state.get("start_unix_s"), int | float):
        since = datetime.fromtimestamp(read_number(state["start_unix_s"])).astimezone()
        text += f", since {since:%Y-%m-%d %H:%M:%S}"
    return text + (" (STALE: its owner has ended)" if state.get("stale") else "")


def format_devices(document: Spec) -> str:
    """Return the devices with their qdiscs, and the protected addresses."""
    devices = document.get("devices")
    entries = [
        f"{entry.get('device')} {entry.get('direction')} ({entry.get('qdisc')})"
        for entry in (devices if isinstance(devices, list) else [])
        if isinstance(entry, dict)
    ]
    names = list(dict.fromkeys(entries))  # each link of a site has its own queue
    text = f", on {', '.join(names)}" if names else ""
    spared = document.get("protected")
    return text + (
        f", sparing {', '.join(map(str, spared))}" if isinstance(spared, list) and spared else ""
    )


def format_round_trips(document: Spec) -> str:
    """Return, for example, `before 0.2 ms, at the start 50.3 ms`; empty without a measurement."""
    rtt = document.get("rtt")
    names = {"before": "before", "during_start": "at the start", "during_end": "at the end",
             "after": "after"}  # fmt: skip
    parts = []
    for key, name in names.items():
        found = rtt.get(key) if isinstance(rtt, dict) else None
        if isinstance(found, dict):
            parts.append(
                f"{name} {format_seconds(found.get('mean_s')) if found.get('received') else 'no answer'}"
            )
    return ", ".join(parts)


def missing_round_trip_reason(document: Spec) -> str | None:
    """Return the document's reason for a missing round-trip time; None without one."""
    missing = document.get("missing")
    reason = missing.get("rtt.during_start") if isinstance(missing, dict) else None
    return None if reason is None else str(reason)


def format_share(found: Spec) -> str:
    """Return, for example, `0.98 % (0.7 to 1.3 %) of 10000 packets`."""
    low, high = read_number(found.get("low")) * 100, read_number(found.get("high")) * 100
    return f"{format_percent(found.get('achieved'))} ({low:.3g} to {high:.3g} %) of {found.get('packets')} packets"
