"""A run of a study, as stored in the database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Condition = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Run:
    """A planned run and the attempt that counts; unknown values are None."""

    run_id: str
    block: int | None
    position: int | None
    benchmark: str
    variant: str
    condition: Condition
    label: str
    is_baseline: bool
    repeat: int | None
    attempts: int
    attempt: str | None
    state: str
    reason: str | None
    valid: bool | None
    invalid_reason: str | None
    job_id: str | None
    start_unix_s: float | None
    elapsed_s: float | None
    nodes: tuple[str, ...]
    tries: int = 1  # within that attempt
    include_invalid: bool = False  # the user requested that invalid runs count

    @property
    def counts(self) -> bool:
        """Whether its values enter the means: it completed, and its conditions were met."""
        return self.state == "completed" and (self.valid is not False or self.include_invalid)
