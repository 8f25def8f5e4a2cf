"""Reads netem_trials.def: what the kernel must have for network conditions, and how one tries."""

from __future__ import annotations

from steelyard.facts.rows import rows, text_of

# The kernel's module: the command that needs it.
TRIALS: dict[str, tuple[str, ...]] = {
    module: tuple(command.split()) for _, (module, command) in rows(text_of("netem_trials.def"))
}
