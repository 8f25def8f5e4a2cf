"""Tests as an ordinary user through a real PBS server, Torque or OpenPBS, whichever is on PATH.

They submit jobs and compare records, accounting and what qstat reports. test_server is for both
servers, test_openpbs for features of OpenPBS, test_mpi starts ranks on two nodes, test_kernel_count
needs nodes whose kernel counts. conftest.py has the fixture `server` and says what is missing:
every missing requirement is the reason of a skip, and a session that skips everything has failed.

The nodes must have Steelyard (docs/admin-pbs.md). tests/system/torque and tests/system/openpbs need
no server.
"""
