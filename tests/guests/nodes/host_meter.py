"""A growing meter for the host of virtual nodes: 20 W, and 15 W for each busy processor.

It writes the counter of a powercap zone, energy_uj, while a process lives. These joules are
synthetic: they follow a known law.
"""

import os
import sys
import time
from pathlib import Path

IDLE_W, BUSY_W = 20.0, 15.0
PERIOD_S = 0.05


def busy_s() -> float:
    """Return processor seconds since the boot, as the sampler counts them (proc(5))."""
    with Path("/proc/stat").open(encoding="ascii") as file:
        user, nice, system, _idle, _wait, irq, softirq = map(int, file.readline().split()[1:8])
    return (user + nice + system + irq + softirq) / 100


def main() -> None:
    counter = os.open(sys.argv[1], os.O_WRONLY)
    watched = Path(f"/proc/{sys.argv[2]}")
    begin_s, begin_busy_s = time.monotonic(), busy_s()
    while watched.exists():
        joules = IDLE_W * (time.monotonic() - begin_s) + BUSY_W * (busy_s() - begin_busy_s)
        os.pwrite(counter, f"{int(1e6 * joules)}\n".encode(), 0)
        time.sleep(PERIOD_S)


if __name__ == "__main__":
    main()
