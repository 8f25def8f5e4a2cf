"""Where the program `steelyard` begins. Ctrl-C before there is anything to clean up just ends it."""

from __future__ import annotations

import signal


def main() -> int:
    """Run the command line; an interruption prints no traceback, however early it is."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not under nohup
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        from steelyard.wrappers.commands import cli

        signal.signal(signal.SIGINT, signal.default_int_handler)
    else:
        from steelyard.wrappers.commands import cli
    return cli.main()
