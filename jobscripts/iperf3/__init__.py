"""iperf3 between the job's nodes: TCP or UDP, in one or both directions.

The server is on the job's second node, a client on every other one, in turn or all at once
(lib/pairs.sh). With one node both ends are on it. A client without an answer is ended a minute
after its time. Congestion control is a tag of the run.

parse.py returns the figures of each client, which is an iteration in the order of the nodes, and
the total of all. iperf3 exits with 0 after a refused connection, so the key `error` decides. The
parameters in the report are compared with the requested ones. Reports of versions
before 3.9 that lack what arrived are rejected. UDP has no omitted seconds.
"""
