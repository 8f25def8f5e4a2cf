"""A moving meter for the host of virtual nodes: 20 W, and 15 W for each processor at work.

Writes the counter of a powercap zone, energy_uj, for as long as a process lives. Such joules are
synthetic: they follow a law that a test knows.
"""

import os
import sys
import time
from pathlib import Path

IDLE_W, BUSY_W = 20.0, 15.0
PERIOD_S = 0.05


def busy_s() -> float:
    """Processor seconds since the boot, as the sampler counts them (proc(5))."""
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
