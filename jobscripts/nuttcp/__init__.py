"""nuttcp between the job's nodes: TCP or UDP, from the clients to the server or back.

The server is on the job's second node, a client on every other one, in turn or all at once
(lib/pairs.sh). With one node both ends are on it. A client without an answer is ended a minute
after its time. The limit of the rate is of the client, not of a stream as in iperf3.

parse.py returns the figures of each client, which is an iteration in the order of the nodes, and
the total of all. nuttcp exits with 0 if its server disappeared: an empty transfer, one that ended
early, or a rate that does not agree with amount and time is rejected. What a version does not
report (retransmissions, round-trip time) is absent.
"""
