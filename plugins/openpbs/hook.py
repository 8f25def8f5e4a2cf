"""The one door of all events."""

import pbs
from base import Refused, log, plain, settings
from job import attach, begin, end, epilogue, sweep
from server import check

EVENTS = (
    ("QUEUEJOB", check),
    ("MODIFYJOB", check),
    ("EXECJOB_BEGIN", begin),
    ("EXECJOB_ATTACH", attach),
    ("EXECJOB_EPILOGUE", epilogue),
    ("EXECJOB_END", end),
    ("EXECJOB_ABORT", end),
    ("EXECHOST_STARTUP", sweep),
    ("EXECHOST_PERIODIC", sweep),
)


def refuse(event, error):
    """Not requeued: a mom's plain rejection would be tried 21 times, and the job held then."""
    if event.type in (pbs.QUEUEJOB, pbs.MODIFYJOB):
        event.reject("steelyard: %s" % error)
    event.job.delete()
    event.reject(plain(error))


def main():
    """Any fault but a refusal is a line in the log, and the job goes on."""
    event = pbs.event()
    try:
        for name, handler in EVENTS:
            if event.type == getattr(pbs, name, None):
                handler(event, settings())
    except Refused as error:
        refuse(event, error)
    except SystemExit:
        raise
    except BaseException as error:  # an alarm comes as KeyboardInterrupt
        log("%s: %r" % (event.type, error))
    event.accept()
