"""Network conditions in words: a specification, and the document of docs/formats.md part 9."""

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


def phrases(spec: Spec) -> list[str]:
    """A specification, one phrase for each part; nothing asked for: one phrase that says so."""
    found = [v.words.format(said(v, spec)) for v in VALUES if v.words and v.json in spec]
    return found or ["nothing is touched"]


def said(value: Value, spec: Spec) -> str:
    """One value, by its kind."""
    found = spec[value.json]
    if value.json == "delay_s":
        return delay(spec)
    if value.kind in ("TIME", "WHOLE_MS"):
        return seconds(found)
    if value.kind == "PERCENT":
        return percent(found)
    if value.kind == "RATE":
        return rate(number(found))
    if isinstance(found, dict):
        return OWN[value.id](found)
    return DIRECTIONS.get(str(found), listed(found))


def delay(spec: Spec) -> str:
    """`50 ms ± 5 ms, normally distributed`."""
    text = seconds(spec["delay_s"])
    if spec.get("jitter_s"):
        shape = spec.get("distribution", "uniform")
        text += f" ± {seconds(spec['jitter_s'])} ({shape} distribution)"
    return text


def gemodel(model: Spec) -> str:
    """The four probabilities under the names of tc-netem(8)."""
    names = {"p": "p", "r": "r", "one_minus_h": "1-h", "one_minus_k": "1-k"}
    return ", ".join(f"{names[key]} {percent(model[key])}" for key in names if key in model)


def loss_state(model: Spec) -> str:
    """The five probabilities of the chain of four states."""
    return ", ".join(f"{key} {percent(chance)}" for key, chance in model.items())


def overhead(found: Spec) -> str:
    """`24 bytes more; in cells of 48 bytes and 5 more`."""
    text = f"{number(found['packet_bytes']):+.0f} bytes"
    if found["cell_bytes"]:
        text += f", in cells of {found['cell_bytes']} bytes and {found['cell_overhead_bytes']} more"
    return text


def slot(found: Spec) -> str:
    """`every 10 ms to 20 ms, at most 32 packets each`."""
    text = f"every {seconds(found['min_s'])}"
    if found.get("distribution"):
        text = f"every {seconds(found['mean_s'])} ± {seconds(found['jitter_s'])}"
        text += f" ({found['distribution']})"
    elif found["max_s"] != found["min_s"]:
        text += f" to {seconds(found['max_s'])}"
    most = [f"{found[what]} {what}" for what in ("packets", "bytes") if found[what]]
    return text + (f", at most {' and '.join(most)} each" if most else "")


OWN: Mapping[str, Callable[[Spec], str]] = {
    "gemodel": gemodel,
    "state": loss_state,
    "overhead": overhead,
    "slot": slot,
}


def rate(bit_per_s: float) -> str:
    """`100 Mbit/s`."""
    for unit, size in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if bit_per_s >= size:
            return f"{bit_per_s / size:g} {unit}"
    return f"{bit_per_s:g} bit/s"


def percent(fraction: object) -> str:
    """`0.1 %` of 0.001."""
    return f"{number(fraction) * 100:.6g} %"


def seconds(value: object) -> str:
    """As people read it; 0 is 0 ms, the delay of a baseline."""
    return console.format_seconds(number(value)) if value else "0 ms"


def number(value: object) -> float:
    """A number of a JSON document."""
    return float(value) if isinstance(value, int | float) else float("nan")


def listed(value: object) -> str:
    """`a or b`."""
    return " or ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def summary(document: Spec) -> Iterator[str]:
    """A condition that was held, line by line: requested, applied, measured, and whether it counts."""
    yield f"requested {document.get('requested') or 'not known'}"
    yield f"applied   {document.get('applied') or 'not known'}{where(document)}"
    yield from sites(document)
    if round_trips(document):
        yield f"measured  round trip to {document.get('peer')}: {round_trips(document)}"
    elif why_no_round_trips(document) and not links(document):
        yield f"measured  no round trip: {why_no_round_trips(document)}"
    for chance in ("loss", "duplicate", "corrupt", "reorder"):
        found = document.get(chance)
        if isinstance(found, dict):
            yield f"measured  {chance} {share(found)}"
    notes = document.get("notes")
    for note in notes if isinstance(notes, list) else []:
        yield f"note      {note}"
    if document.get("valid") is False:
        yield f"NOT VALID {document.get('invalid_reason') or 'no reason given'}"
    if document.get("undone") is False:
        yield "NOT UNDONE: `steelyard netem show` lists what is in force, `steelyard netem clear` removes it"


def links(document: Spec) -> list[Spec]:
    """Of sites the documents of the links that begin at the node's; [] without sites."""
    found = document.get("sites")
    several = found.get("links") if isinstance(found, dict) else None
    return [one for one in several if isinstance(one, dict)] if isinstance(several, list) else []


def sites(document: Spec) -> Iterator[str]:
    """At which site the node was, by which file, and each link: asked, measured, whether it counts."""
    found = document.get("sites")
    if not isinstance(found, dict):
        return
    yield f"site      {found.get('here')}, by {found.get('name')}.sites ({found.get('sha256')})"
    for one in links(document):
        told = round_trips(one) or f"no round trip: {why_no_round_trips(one) or 'not known'}"
        peer = f"to {one.get('peer')} " if one.get("peer") else ""
        bad = "" if one.get("valid") is not False else f"; NOT VALID: {one.get('invalid_reason')}"
        yield f"to {one.get('to_site')}: {one.get('applied')}: {peer}{told}{bad}"


def owner(state: Spec) -> str:
    """`job 4711 on n1, of user 1000, since 12:03:04`; whether anybody still wants it."""
    text = f"job {state.get('job_id')} on {state.get('node')}, of user {state.get('user_id')}"
    if isinstance(state.get("start_unix_s"), int | float):
        since = datetime.fromtimestamp(number(state["start_unix_s"])).astimezone()
        text += f", since {since:%Y-%m-%d %H:%M:%S}"
    return text + (" (STALE: its owner has ended)" if state.get("stale") else "")


def where(document: Spec) -> str:
    """The devices, and what was spared."""
    devices = document.get("devices")
    several = [
        f"{entry.get('device')} {entry.get('direction')} ({entry.get('qdisc')})"
        for entry in (devices if isinstance(devices, list) else [])
        if isinstance(entry, dict)
    ]
    names = list(dict.fromkeys(several))  # of sites each link has a queue of its own
    text = f", on {', '.join(names)}" if names else ""
    spared = document.get("protected")
    return text + (
        f", sparing {', '.join(map(str, spared))}" if isinstance(spared, list) and spared else ""
    )


def round_trips(document: Spec) -> str:
    """`before 0.2 ms, at the start 50.3 ms, …`; empty where nothing was measured."""
    rtt = document.get("rtt")
    names = {"before": "before", "during_start": "at the start", "during_end": "at the end",
             "after": "after"}  # fmt: skip
    parts = []
    for key, name in names.items():
        found = rtt.get(key) if isinstance(rtt, dict) else None
        if isinstance(found, dict):
            parts.append(
                f"{name} {seconds(found.get('mean_s')) if found.get('received') else 'no answer'}"
            )
    return ", ".join(parts)


def why_no_round_trips(document: Spec) -> str | None:
    """The reason of the document, None without one."""
    missing = document.get("missing")
    reason = missing.get("rtt.during_start") if isinstance(missing, dict) else None
    return None if reason is None else str(reason)


def share(found: Spec) -> str:
    """`0.98 % (0.7 to 1.3 %) of 10000 packets`."""
    low, high = number(found.get("low")) * 100, number(found.get("high")) * 100
    return f"{percent(found.get('achieved'))} ({low:.3g} to {high:.3g} %) of {found.get('packets')} packets"
