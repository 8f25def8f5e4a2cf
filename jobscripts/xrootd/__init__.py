"""A physics analysis, or a copy, of a file from an XRootD server, by several clients.

job.sh starts the server on the job's second node, or with `server = "same"` on the first, or uses
the one of `url`. Clients are on the other nodes, at once or in turn; with one node all are on it.
The programs are those of `jobscripts.hep`. Mode `local` reads the same file without a server, mode
`command` runs a program of the user, mode `xrdcp` copies.

parse.py checks that every client found what the input was made with, unless `verify = false`. An
iteration is all clients together: the time from the first start to the last end, events and bytes;
`client_seconds` has each client. The server's counts are of the whole run and need its own server.
A copy that is too short for a throughput has `bytes_needed` above `bytes_read`.
"""
