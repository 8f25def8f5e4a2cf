"""The entry point of all events."""

import pbs
from base import Refused, log, plain, settings
from job import attach, begin, end, epilogue, sweep
from submission_check import check

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
    """Delete the job instead of requeueing it.

    After a mom's plain rejection PBS would try 21 times, and then hold the job.
    """
    if event.type in (pbs.QUEUEJOB, pbs.MODIFYJOB):
        event.reject("steelyard: %s" % error)
    event.job.delete()
    event.reject(plain(error))


def main():
    """Handle the event; errors other than a refusal are logged, and the job continues."""
    event = pbs.event()
    try:
        for name, handler in EVENTS:
            if event.type == getattr(pbs, name, None):
                handler(event, settings())
    except Refused as error:
        refuse(event, error)
    except SystemExit:
        raise
    except BaseException as error:  # an alarm is raised as KeyboardInterrupt
        log("%s: %r" % (event.type, error))
    event.accept()
