"""Shared by all tiers: the signals of a terminal, and a failure if every test was skipped."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest

from steelyard.analysis.sources import record_packs

OPEN_MPI_FOLDER = "OMPI_MCA_orte_tmpdir_base"


def pytest_configure() -> None:
    """Give children the signals that a terminal sends, however the tests were started.

    `&` in a script ignores SIGINT, nohup ignores SIGHUP; children inherit that, and a shell could
    not even trap them. A handler is not inherited: with one, this process still survives a hangup.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)
    # Open MPI searches for fabrics that no test has, which takes more than a second per start.
    os.environ.setdefault("OMPI_MCA_pml", "ob1")
    os.environ.setdefault("OMPI_MCA_btl", "^openib,ofi")
    # All Open MPI programs of a user on a node share a folder in /tmp. Two that start at one moment
    # both want to make it, and one that ends removes it from one that starts: that one crashes.
    # Users whose jobs a test starts use it, too. A program without mpirun is isolated, as in jobs
    # (jobscripts/lib/mpi.sh): else Open MPI 4.1.4 starts a daemon for it, and MPI_Finalize may unload
    # the code that its progress thread is about to call (1 crash in 720 starts on a busy machine).
    folder = tempfile.mkdtemp(prefix="sympi-", dir="/tmp")
    Path(folder).chmod(0o1777)
    os.environ.update({OPEN_MPI_FOLDER: folder, "OMPI_MCA_ess_singleton_isolated": "1"})


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a session that skipped every test, since it has shown nothing.

    Files of programs that tests killed are removed.
    """
    record_packs.remove_stale_scratch()
    shutil.rmtree(os.environ[OPEN_MPI_FOLDER], ignore_errors=True)
    reporter = session.config.pluginmanager.getplugin("terminalreporter")
    if reporter is None or hasattr(session.config, "workerinput"):
        return
    if reporter.stats.get("skipped") and not reporter.stats.get("passed"):
        reporter.write_line("\nevery test was skipped: nothing was shown", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
