"""Torque's prologue, epilogue and submit filter, without a Torque: called as a real pbs_mom did.

conftest.py makes two nodes in a private folder, with our scripts in each mom_priv; their arguments
and environment are recorded in tests/data/torque. mom.py is a daemon that runs them as pbs_mom
does. wire.py gives a node real queues: `lo` of a network namespace.

The tests check what the scripts return (a wrong exit code would requeue a job forever), that a job
is measured or refused, and that conditions are in the kernel and undone. Some need root. A real
server: tests/pbs.
"""
