"""Replaces `{threads}` in a study's values by a factor's level in each run.

In a command the level is quoted as its position requires, so that it remains one argument. In a
variable's value it is inserted unchanged. Braces around anything but a factor's name remain:
`${HOME}`, `{1..3}`, `awk '{print}'`. A user's command with such a name outside '…' is rejected
(unknown_names), since it would be run with the braces.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Iterator, Mapping

from steelyard.jobscripts.parameters import Parameter, Value, shell_text

PLACE = re.compile(r"(?<!\$)\{([A-Za-z_][A-Za-z0-9_]*)\}")
KINDS = ("command", "environment")
# Tokens that change a shell's state, in words, "…" and `$(…)` (a ")" ends the last one).
TOKEN = re.compile(r"\\.|\$'(?:\\.|[^'\\])*'?|'|\"|`|\$\(|\(|\)", re.DOTALL)
PLAIN, DOUBLE, SINGLE, BACKTICK = "", '"', "'", "`"


def names_in(parameter: Parameter, value: object) -> set[str]:
    """Return the names in braces in a value of this parameter, factors or not."""
    if parameter.type not in KINDS:
        return set()
    texts = [value] if isinstance(value, str) else []
    if isinstance(value, Mapping):
        texts = list(value.values())
    return {name for text in texts for name in PLACE.findall(str(text))}


def unknown_names(command: str, factors: Collection[str]) -> list[str]:
    """Return the names in braces that no factor has, outside '…', where awk or perl use braces."""
    names = set(PLACE.findall(command)) - set(factors)
    found = (match[1] for match, state in places(command, names) if state != SINGLE)
    return list(dict.fromkeys(found))


def fill(parameter: Parameter, value: Value, levels: Mapping[str, Value]) -> Value:
    """Return the value with levels for factors' names; raise ValueError if one cannot be quoted."""
    if parameter.type == "command":
        return filled_command(str(value), levels)
    if parameter.type == "environment":
        table = json.loads(str(value)) if str(value) else {}
        return json.dumps({k: filled_text(v, levels) for k, v in table.items()}, sort_keys=True)
    return value


def filled_text(text: str, levels: Mapping[str, Value]) -> str:
    """Insert levels unchanged."""
    return PLACE.sub(lambda m: shell_text(levels[m[1]]) if m[1] in levels else m[0], text)


def filled_command(command: str, levels: Mapping[str, Value]) -> str:
    """Insert levels, each quoted as its position requires."""
    parts, end = [], 0
    for match, state in places(command, levels):
        parts += [command[end : match.start()], quoted(shell_text(levels[match[1]]), state, match)]
        end = match.end()
    return "".join([*parts, command[end:]])


def places(command: str, names: Collection[str]) -> Iterator[tuple[re.Match[str], str]]:
    """Yield each position of a name, and the innermost quote around it."""
    stack, done = [PLAIN], 0
    for match in PLACE.finditer(command):
        if match[1] in names:
            advance(stack, command[done : match.start()])
            done = match.end()
            yield match, stack[-1]


def advance(stack: list[str], text: str) -> None:
    """Update the stack of open quotes after this text; the innermost is last."""
    at = 0
    while at < len(text):
        if stack[-1] == SINGLE:
            end = text.find("'", at)
            if end < 0:
                return
            stack.pop()
            at = end + 1
            continue
        token = TOKEN.search(text, at)
        if token is None:
            return
        at = token.end() if opened(stack, token[0]) else token.start() + 1


def opened(stack: list[str], token: str) -> bool:
    """Update the stack for one token; False: only the token's first character was read."""
    state = stack[-1]
    if token[0] == "\\":
        return True
    if token.startswith("$'"):
        if state != DOUBLE and not (len(token) > 2 and token.endswith("'")):
            stack.append(BACKTICK)  # nothing can be inserted safely into $'…', either
        return state != DOUBLE
    if token in ('"', "`"):
        if state == token:
            stack.pop()
        else:
            stack.append(token)
    elif token in ("$(", "(") and not (state == DOUBLE and token == "("):
        stack.append(PLAIN)
    elif token == "'" and state != DOUBLE:
        stack.append(SINGLE)
    elif token == ")" and state == PLAIN and len(stack) > 1:
        stack.pop()
    return True


def quoted(level: str, state: str, match: re.Match[str]) -> str:
    """Return a level quoted for this position; raise ValueError if that is impossible."""
    if state == BACKTICK:
        raise ValueError(
            f"{match[0]} stands in `…` or $'…', where nothing can be quoted safely: write $(…) or "
            f'"…", or give it as a variable, env = {{ X = "{match[0]}" }}'
        )
    if state == SINGLE:
        return level.replace("'", "'\\''")
    if state == DOUBLE:
        return re.sub(r'([\\"$`])', r"\\\1", level)
    return shlex.quote(level)
