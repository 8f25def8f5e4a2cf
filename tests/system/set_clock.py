"""A wall clock that a test sets for the processes that it starts (set_clock.c)."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("set_clock.c")


@dataclass(frozen=True, slots=True)
class WallClock:
    """The environment of these processes, and the file with the clock's offset."""

    library: Path
    file: Path

    def set_off(self, seconds: int) -> None:
        """Set the offset, which takes effect at once."""
        new = self.file.with_suffix(".new")
        new.write_text(f"{seconds}\n")
        new.chmod(0o644)
        new.replace(self.file)

    @property
    def variables(self) -> dict[str, str]:
        """Return the variables for their environment."""
        return {"LD_PRELOAD": str(self.library), "STEELYARD_TEST_CLOCK": str(self.file)}

    @property
    def prefix(self) -> tuple[str, ...]:
        """Return a command prefix."""
        return ("env", *(f"{name}={value}" for name, value in self.variables.items()))


def make(folder: Path) -> WallClock:
    """Make a clock that is correct until it is set."""
    clock = WallClock(folder / "set_clock.so", folder / "clock")
    argv = ["cc", "-D_GNU_SOURCE", "-O2", "-shared", "-fPIC", "-o", str(clock.library), str(SOURCE)]
    subprocess.run(argv, check=True, timeout=60)
    clock.set_off(0)
    return clock
