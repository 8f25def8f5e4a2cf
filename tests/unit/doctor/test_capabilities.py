"""The capabilities that `steelyard doctor` reports: they follow its checks, and are real."""

from __future__ import annotations

from steelyard.wrappers.base.doctor_check import Check
from steelyard.wrappers.doctor import capabilities

RIGHT = [
    Check("node program", "ok", "steelyard-node 1"),
    Check("energy", "ok", "package-0"),
    Check("Slurm", "ok", "controller answers"),
    Check("netem programs", "ok", "/usr/sbin/tc"),
    Check("netem kernel", "ok", "all"),
    Check("benchmark fio", "ok", "/usr/bin/fio"),
    Check("benchmark npb", "ok", "/usr/bin/mpirun"),
]


def told(*changed: Check, root: bool = True) -> dict[str, tuple[bool, str]]:
    """Return the reports by capability."""
    names = {check.name for check in changed}
    checks = [*(check for check in RIGHT if check.name not in names), *changed]
    return {
        f"{one.what} {one.can}": (one.can, one.text)
        for one in capabilities.list_capabilities(checks, root)
    }


def test_without_the_node_program_nothing_can_be_done() -> None:
    (one,) = told(Check("node program", "missing", "not found", "make all"))
    assert one == "measure anything False"
