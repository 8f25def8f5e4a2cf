"""Variables that a study sets for a command: a table NAME = "value", stored as canonical JSON."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Prefixes of the variables of the run's shell functions.
OURS = ("SY_", "STEELYARD_")


class EnvironmentTableError(ValueError):
    """A table of variables is invalid; the message is one sentence."""


def canonical(value: object) -> str:
    """Return the canonical JSON of a table of variables, or of its JSON text."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if value else {}
        except (ValueError, RecursionError) as error:
            raise EnvironmentTableError('no JSON: a table NAME = "value" is needed') from error
    if not isinstance(value, Mapping):
        raise EnvironmentTableError('a table NAME = "value" is needed')
    return json.dumps({name: checked(name, value[name]) for name in sorted(value)}, sort_keys=True)


def checked(name: object, value: object) -> str:
    """Return the value of a variable as text; flags are `true` and `false`."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise EnvironmentTableError(f"{name!r}: a variable's name is letters, digits and '_'")
    if name.startswith(OURS):
        raise EnvironmentTableError(f"{name}: Steelyard's own variables are not for a study to set")
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value) if isinstance(value, str | int | float) else None
    if text is None or not text.isprintable():
        raise EnvironmentTableError(f"{name}: a text of one line is needed, found {value!r}")
    return text


def words(text: str) -> str:
    """Return the variables as a shell reads them: `OMP_NUM_THREADS=4 X='a b'`."""
    table = json.loads(text) if text else {}
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in table.items())
