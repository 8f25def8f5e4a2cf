"""Network conditions of a run's nodes: table `network`, and specifications in normal form.

docs/formats.md part 9 describes the conditions.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from steelyard.analysis.sources.records import Record, find_value, has_kind

FACTOR, NO_LEVEL = "network", "none"

# Column of the table `network`: (dotted path in network_conditions, kind as in records.COLUMNS).
COLUMNS = {
    "requested": ("requested", "text"),
    "applied": ("applied", "text"),
    "scope": ("scope", "text"),
    "qdisc": ("devices", "qdiscs"),
    "devices": ("devices", "names"),
    "peer": ("peer", "text"),
    "rtt_before_s": ("rtt.before.median_s", "float"),
    "rtt_during_start_s": ("rtt.during_start.median_s", "float"),
    "rtt_during_end_s": ("rtt.during_end.median_s", "float"),
    "rtt_after_s": ("rtt.after.median_s", "float"),
    "loss_achieved": ("loss.achieved", "float"),
    "loss_low": ("loss.low", "float"),
    "loss_high": ("loss.high", "float"),
    "loss_packets": ("loss.packets", "int"),
    "duplicate_achieved": ("duplicate.achieved", "float"),
    "corrupt_achieved": ("corrupt.achieved", "float"),
    "reorder_achieved": ("reorder.achieved", "float"),
    "sent_packets": ("counters.sent_packets", "int"),
    "dropped_packets": ("counters.dropped_packets", "int"),
    "apply_s": ("apply_s", "float"),
    "undo_s": ("undo_s", "float"),
    "valid": ("valid", "bool"),
    "invalid_reason": ("invalid_reason", "text"),
    "undone": ("undone", "bool"),
}


def find_conditions(record: Record) -> Mapping[str, Any] | None:
    """Return the record's network conditions; None: none were requested on that node."""
    document = record.get("network_conditions")
    return document if isinstance(document, dict) else None


def read_columns(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of the table `network`. A field of an unexpected type is NULL."""
    return {name: read_column(document, path, kind) for name, (path, kind) in COLUMNS.items()}


def read_column(document: Mapping[str, Any], path: str, kind: str) -> Any:
    """Return one column of the table `network`."""
    if kind in ("qdiscs", "names"):
        devices = [d for d in document.get("devices") or () if isinstance(d, dict)]
        found = [str(d.get("qdisc" if kind == "qdiscs" else "device") or "?") for d in devices]
        return found if kind == "names" else ", ".join(dict.fromkeys(found)) or None
    value = find_value(document, path)
    return value if value is not None and has_kind(value, kind) else None


# Units of the specification (docs/netem.md), in s, bit/s, or as a fraction.
UNITS = {
    "us": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "kbit": Decimal(1000),
    "mbit": Decimal(10) ** 6,
    "gbit": Decimal(10) ** 9,
    "bit": Decimal(1),
    "%": Decimal("0.01"),
}
# After a digit, letter or point the number would be part of a name or an address.
QUANTITY = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)(us|ms|s|[kmg]?bit|%)(?!\w)")


def normalize_specification(text: str) -> list[str]:
    """Return a normal form, so that equivalent specifications compare equal: `0.05s` as `50ms`.

    The grammar is parsed in C. This only normalizes quantities, networks and the order.
    """
    parts = ("".join(option.split()) for option in text.split(","))
    return sorted(
        normalize_or_copy_option(option)
        for option in parts
        if option not in ("", "direction=egress")  # the default
    )


def normalize_or_copy_option(option: str) -> str:
    """Normalize a part of a specification; return it unchanged if it is not in the grammar."""
    try:
        return normalize_option(option)
    except (ArithmeticError, ValueError, LookupError):
        return option


def normalize_option(option: str) -> str:
    """Normalize `to=10.1.2.3/8` and quantities in base units; leave out default values."""
    key, _, value = option.partition("=")
    if key == "to":
        try:
            return f"to={ipaddress.ip_network(value, strict=False)}"
        except ValueError:
            return option
    if value.isdecimal():
        return f"{key}={int(value)}"
    option = QUANTITY.sub(convert_to_base_units, option)
    if key == "loss" and "gemodel:" in option:
        return drop_loss_defaults(option, 1, 0)
    if key == "loss" and "state:" in option:
        return drop_loss_defaults(option, 0, 1, 0)
    if key in ("rate", "slot"):
        return drop_zeros(option)
    return option.removesuffix("/uniform").removesuffix("~0")


def convert_to_base_units(match: re.Match[str]) -> str:
    """Convert `50ms` to `0.05u`, and any zero to `0`."""
    value = Decimal(match[1]) * UNITS[match[2]]
    return f"{value.normalize():f}u" if value else "0"


def drop_loss_defaults(option: str, *defaults: int) -> str:
    """Drop default values of loss=gemodel:p:r:1-h:1-k or loss=state:p13:p31:p32:p23:p14 from the
    right.

    The second one's is 1 minus the first; `defaults` are those of the others.
    """
    kind, *shares = option.split(":")
    values = [None, 1 - Decimal(shares[0].rstrip("u")), *defaults]
    while len(shares) > 1 and Decimal(shares[-1].rstrip("u")) == values[len(shares) - 1]:
        shares.pop()
    return ":".join([kind, *shares])


def drop_zeros(option: str) -> str:
    """Drop zeros of rate=RATE:PACKET:CELL:MORE and slot=MIN:MAX:PACKETS:BYTES from the right.

    A MAX that equals MIN is dropped as well.
    """
    first, *more = option.split(":")
    while len(more) > 1 and more[-1] == "0":
        more.pop()
    return first if more == [first.removeprefix("slot=")] else ":".join([first, *more])
