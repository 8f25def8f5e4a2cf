"""Shared by the benchmarks xrootd and roottree: input files, a server, clients that read them.

`client_controller` is the program that job.sh runs on the job's first node. `client_groups` starts
a group of clients on each node (`client_group`), whose `client_processes` begin at the same time.
`client_tasks` is the timed work of one client. `counting_reader` counts and times every byte that
uproot requests. `events`, `tree_writer` and `input_files`, which reads the parameters, make the
input once and store it with its SHA-256; `input_faults` names what is wrong in a file.
`xrootd_server` runs an XRootD server for one run and reads what it counted, `page_cache` drops the
file's pages on request, `background_traffic` generates traffic of other clients. `client_output`
writes the output that parse.py reads. `minimum_copy_size` computes whether a copy is long enough.

All times of a node are from one clock. A client that fails makes the run fail with its message.
Server, workers and traffic end with the run, also when it is killed.
"""
