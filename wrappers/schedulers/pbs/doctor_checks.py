"""The checks of `steelyard doctor` for Torque and OpenPBS."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from steelyard.analysis.sources.pbs import pbs_commands
from steelyard.wrappers.base.doctor_check import Check
from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.schedulers.pbs.dialects import OpenPbs, Torque

TITLES = {"torque": Torque, "openpbs": OpenPbs}
PROGRAMS = ("qsub", "qstat", "qdel", "qselect", "pbsnodes")
# Slurm has no qselect: Slurm's imitations of the other commands do not help.
PAGE = "docs/admin-pbs.md"


def explain_absence() -> str:
    """Return a sentence that says why this machine has no PBS."""
    found = shutil.which("qsub")
    if found is None:
        return "qsub is not in PATH"
    if pbs_commands.is_slurm_imitation(found):
        return f"{found} is Slurm's imitation of Torque's qsub: its jobs are Slurm's"
    return f"{found} is there, but qstat and pbsnodes of Torque or OpenPBS are not"


def is_installed() -> bool:
    """Return whether qsub and qstat of PBS are installed, without running them."""
    found = shutil.which("qsub")
    return (
        found is not None
        and not pbs_commands.is_slurm_imitation(found)
        and pbs_commands.is_installed()
    )


def run_checks() -> Iterator[Check]:
    """Check the commands, the server, its dialect and Steelyard's installation on the nodes."""
    found = shutil.which("qsub")
    if not is_installed():
        imitation = found is not None and pbs_commands.is_slurm_imitation(found)
        advice = "use --scheduler slurm" if imitation else "studies run here by --scheduler local"
        yield Check("PBS", "warning", explain_absence(), advice)
        return
    lacking = [name for name in PROGRAMS if shutil.which(name) is None]
    if lacking:
        yield Check(
            "PBS", "missing", f"{', '.join(lacking)} not in PATH",
            "the commands of Torque or OpenPBS belong together: mend PATH",
        )  # fmt: skip
        return
    yield from check_server()


def check_server() -> Iterator[Check]:
    """Check that the server answers, and run its dialect's checks."""
    name = pbs_commands.detect_dialect()
    if name is None:
        yield Check(
            "PBS", "warning", "qstat --version names neither Torque nor OpenPBS",
            "Steelyard knows Torque 4 to 6, OpenPBS and PBS Professional",
        )  # fmt: skip
        return
    dialect = TITLES[name]()
    title = f"{dialect.title} {pbs_commands.read_version() or '(version not reported)'}"
    try:
        server, _ = dialect.read_server(patient=False)
    except MissingError as error:
        yield Check(
            "PBS", "warning", f"{title}: its server does not answer ({error})",
            "is it up, and do PBS_DEFAULT, PBS_SERVER or pbs.conf name it?",
        )  # fmt: skip
        return
    yield Check("PBS", "ok", f"{title}, server {server} answers")
    yield from dialect.run_checks()
