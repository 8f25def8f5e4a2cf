"""A meter for a virtual node, which has none: 5 W, and 10 W for each busy processor.

It runs in the guest as root and writes a file that Steelyard reads (docs/sampler.md, “A meter of
your own”). Its joules are synthetic: they show that power is read, integrated and joined, but not a
node's real power.
"""

import time
from pathlib import Path

FOLDER = Path("/run/steelyard-meters/lab")
IDLE_W, BUSY_W, TICKS_PER_S = 5.0, 10.0, 100
PERIOD_S = 0.25


def busy_s() -> float:
    """Return busy processor seconds since the boot (proc(5))."""
    numbers = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    idle, waiting = numbers[3], numbers[4]
    return (sum(numbers[:8]) - idle - waiting) / TICKS_PER_S


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True, mode=0o755)
    begin_s, begin_busy_s = time.monotonic(), busy_s()
    while True:
        at_s = time.monotonic()
        joules = IDLE_W * (at_s - begin_s) + BUSY_W * (busy_s() - begin_busy_s)
        text = f"covers node\njoules {joules:.3f}\nat {at_s:.3f}\nperiod {PERIOD_S}\n"
        (FOLDER / ".new").write_text(text)
        (FOLDER / ".new").rename(FOLDER / "node.meter")
        time.sleep(PERIOD_S)


main()
