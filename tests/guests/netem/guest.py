"""A temporary virtual node (User Mode Linux), of this machine's kernel package or of a newer one.

Conditions are applied in it, and undone (tests/guests/netem/inside.sh).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
KERNELS = Path("/var/tmp/steelyard-kernels")  # folders of other releases, downloaded once
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
BOOT_S = 400

# The newer C library covers this machine's, only for this process and its children.
BOOT = f"""
[ -z "$LIBRARY" ] || mount -t overlay -o "lowerdir=$LIBRARY:{LIBRARIES}" overlay {LIBRARIES}
exec env TMPDIR=/dev/shm LD_PRELOAD="$PRELOAD" timeout {BOOT_S} "$@"
"""


@dataclass(frozen=True)
class Kernel:
    """A kernel that can be booted, and its modules."""

    program: str
    modules: str
    library: str = ""


OWN = Kernel("linux.uml", "/usr/lib/uml/modules")


def newer(suite: str) -> Kernel:
    """Return the kernel of another release of Debian."""
    folder = KERNELS / suite
    KERNELS.mkdir(exist_ok=True)
    subprocess.run([ROOT / "tests/guests/netem/kernel.sh", suite, folder], check=True, timeout=300)
    return Kernel(str(folder / "linux.uml"), str(folder / "modules"), str(folder / "lib"))


@dataclass(frozen=True)
class Case:
    """The results of one condition."""

    folder: Path
    name: str

    def text(self, kind: str) -> str:
        """Return a text of the case.

        out: the command's output; err: why it was refused; before, after: the queues.
        """
        return (self.folder / f"{self.name}.{kind}").read_text()

    @property
    def done(self) -> dict[str, Any]:
        """Return the final document, checked to be as requested, effective and undone."""
        found: dict[str, Any] = json.loads(self.text("done"))
        assert found["applied"] == found["requested"]
        assert found["valid"] is True, found["invalid_reason"]
        assert found["undone"] is True
        assert self.text("before") == self.text("after")
        return found

    def rtt_ms(self, which: str) -> float:
        """Return a time that ping -q prints: min, avg or max."""
        found = re.search(r"= ([\d.]+)/([\d.]+)/([\d.]+)/", self.text("out"))
        assert found, self.text("out")
        return float(found[1 + ("min", "avg", "max").index(which)])


def boot(kernel: Kernel, folder: Path, cases: Sequence[tuple[str, str, str]]) -> Mapping[str, Case]:
    """Boot one guest and run all cases (name, specification, command), one after another."""
    (folder / "cases").write_text("".join(f"{' '.join(case)}\n" for case in cases))
    words = [kernel.program, "rootfstype=hostfs", "rootflags=/", "ro", "mem=512M",
             f"init={ROOT}/tests/guests/layouts/guest_init.sh", "quiet", "con=null", "con0=fd:0,fd:1",
             f"umid=netem{os.getpid()}", f"uml_dir={folder}/uml/", "SY_LAYOUT=v2",
             f"SY_SOURCE={ROOT}", f"SY_OUT={folder}", f"SY_MODULES={kernel.modules}",
             "SY_INSIDE=tests/guests/netem/inside.sh"]  # fmt: skip
    environment = {**os.environ, "LIBRARY": kernel.library,
                   "PRELOAD": str(ROOT / "build/lib/libsteelyard-uml.so")}  # fmt: skip
    with (folder / "console").open("w") as console:
        subprocess.run(
            ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "sh", "-c", BOOT,
             "sh", *words],
            env=environment, stdin=subprocess.DEVNULL, stdout=console, stderr=console, check=False,
        )  # fmt: skip
    assert (folder / "rc").exists(), (folder / "console").read_text()[-3000:]
    assert (folder / "rc").read_text() == "0\n", (folder / "console").read_text()[-3000:]
    return {name: Case(folder, name) for name, _, _ in cases}
