"""Steelyard's hook for OpenPBS and PBS Pro: notifies steelyard-node of a job's begin and end.

It runs in the server (queuejob, modifyjob: checks the user's request) and in every mom (execjob_*:
measures the job; exechost_*: removes leftovers). It uses only Python 3.6 and its library, which is
what PBS may embed. Each event is a process of 60 to 160 ms, so that nothing heavy is imported.

No failure here affects a job, except a requested condition that cannot be applied.
"""
