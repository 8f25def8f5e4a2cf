"""The checks of `steelyard doctor` for Slurm."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

from steelyard.analysis.sources import slurm_command_environment
from steelyard.wrappers.base import programs
from steelyard.wrappers.base.doctor_check import Check

TIMEOUT_S = 10  # a person waits


def read_output(*command: str) -> str | None:
    """Return stdout of a Slurm program, or None if it is missing, fails or hangs."""
    try:
        done = programs.run_quietly(
            command, TIMEOUT_S, slurm_command_environment.build_environment()
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None


def run_checks() -> Iterator[Check]:
    """Check Slurm's commands, its controller, Steelyard's plugin, and what the plugin needs of
    Slurm."""
    if shutil.which("sbatch") is None:
        yield Check(
            "Slurm", "warning", "sbatch is not in PATH",
            "studies run here by --scheduler local; for a trial: steelyard cluster up",
        )  # fmt: skip
        return
    config = read_output("scontrol", "show", "config")
    if config is None:
        yield Check(
            "Slurm", "warning", "sbatch is there, but the controller does not answer",
            "is SLURM_CONF right? For a trial: steelyard cluster up, then steelyard cluster shell",
        )  # fmt: skip
        return
    version = next((line for line in config.splitlines() if "SLURM_VERSION" in line), "")
    yield Check("Slurm", "ok", f"controller answers, version {version.partition('=')[2].strip()}")
    yield check_plugin(read_output("sbatch", "--help") or "")
    yield check_prolog_flags(config)


def check_plugin(sbatch_help: str) -> Check:
    """Check that sbatch knows Steelyard's options."""
    if "[steelyard]" in sbatch_help:
        return Check("plugin", "ok", "sbatch --help shows the options marked [steelyard]")
    return Check(
        "plugin", "warning", "Slurm does not load our plugin: jobs are not measured",
        "an admin installs it: docs/admin.md",
    )  # fmt: skip


def check_prolog_flags(config: str) -> Check:
    """Check for an extern step, which the plugin needs on every node of a job."""
    line = next((row for row in config.splitlines() if row.startswith("PrologFlags")), "")
    flags = line.partition("=")[2].strip() or "none"
    if "Contain" in flags:
        return Check("PrologFlags", "ok", flags)
    return Check(
        "PrologFlags", "warning", f"{flags}: nodes on which no step runs are not measured",
        "set PrologFlags=Contain in slurm.conf: docs/admin.md",
    )  # fmt: skip
