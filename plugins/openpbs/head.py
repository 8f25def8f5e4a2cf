"""Steelyard's hook for OpenPBS and PBS Pro: tells steelyard-node that a job comes and goes.

Runs in the server (queuejob, modifyjob: is what the user asks for right?) and in every mom
(execjob_*: measure the job; exechost_*: look after what was left). Python 3.6 and its library only:
that is what PBS may embed. A process of 60 to 160 ms each time, so nothing heavy is imported.

Nothing that fails here reaches a job, except a condition that was asked for and cannot be had.
"""
