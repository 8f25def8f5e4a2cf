"""What every tier needs: signals as a terminal gives them, no green without a test, second tries told."""

from __future__ import annotations

import os
import signal

import pytest


def pytest_configure() -> None:
    """Children get the signals that a terminal sends, however we were started.

    `&` in a script ignores SIGINT, nohup SIGHUP; children inherit that, and a shell could not even
    trap them. A handler is not inherited: with one, we still survive a hangup.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)
    # Open MPI looks for fabrics that no test has, for more than a second a start.
    os.environ.setdefault("OMPI_MCA_pml", "ob1")
    os.environ.setdefault("OMPI_MCA_btl", "^openib,ofi")


MOST_AGAIN = 3  # tests that may need a second try: more is a fault of ours


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Why a test that had a second try has failed first: it is a fault to be found, passed or not."""
    first = terminalreporter.stats.get("rerun", [])
    if first:
        terminalreporter.section("failed at the first try, tried again")
    for report in first:
        terminalreporter.write_sep("-", report.nodeid)
        terminalreporter.write_line(report.longreprtext)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where every test was skipped, nothing was shown: that is red, as are many second tries."""
    reporter = session.config.pluginmanager.getplugin("terminalreporter")
    if reporter is None or hasattr(session.config, "workerinput"):
        return
    if reporter.stats.get("skipped") and not reporter.stats.get("passed"):
        reporter.write_line("\nevery test was skipped: nothing was shown", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    again = {report.nodeid for report in reporter.stats.get("rerun", [])}
    if len(again) > MOST_AGAIN:
        reporter.write_line(f"\n{len(again)} tests were tried again, {MOST_AGAIN} may be", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
