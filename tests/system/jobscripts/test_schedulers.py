"""The seam of the shell library: what differs between schedulers is in one file for each."""

from __future__ import annotations

import subprocess
from pathlib import Path

from steelyard.jobscripts import registry


def test_a_scheduler_that_the_library_does_not_know_is_refused(tmp_path: Path) -> None:
    library = tmp_path / "steelyard.sh"
    library.write_text(registry.library(), encoding="utf-8")
    script = '. "$1"; sy_choose_scheduler'
    done = subprocess.run(
        ["bash", "-c", script, "-", library],
        env={"PATH": "/usr/bin:/bin", "SY_SCHEDULER": "lsf"},
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )
    said = "steelyard: SY_SCHEDULER=lsf: expected one of local pbs slurm\n"
    assert (done.returncode, done.stderr) == (1, said)
