"""Normal form of a network specification, in which equivalent ones are equal."""

from __future__ import annotations

import ipaddress
import re
from decimal import Decimal

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
DEFAULT_DIRECTION = "direction=egress"


def normalize_specification(text: str) -> list[str]:
    """Return a normal form, so that equivalent specifications compare equal: `0.05s` as `50ms`.

    The grammar is parsed in C. This only normalizes quantities, networks and the order.
    """
    parts = ("".join(option.split()) for option in text.split(","))
    return sorted(
        normalize_or_copy_option(option)
        for option in parts
        if option not in ("", DEFAULT_DIRECTION)
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
