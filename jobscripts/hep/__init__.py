"""What the benchmarks xrootd and roottree share: input files, a server, clients that read them.

`client` is the program that job.sh runs on the job's first node; `run_request` reads its parameters.
`client_groups` starts a group of clients on each node (`client_group`), whose `workers` begin together;
`client_tasks` is what one client does with the input, timed. `reader` counts and times every byte that
uproot requests. `events`, `tree_writer` and `input_files` make the input once and keep it with its SHA-256;
`input_checks` names what is wrong in a file. `server` runs an XRootD server for one run, `page_cache` drops
the file's pages on request, `background_traffic` is the traffic of others. `client_output` writes what
parse.py reads back; `spans` notes the times of iterations, `copy_length` whether a copy is long enough.

All times of a node come from one clock. A client that fails makes the run fail with its message. Server,
workers and traffic end with the run, also when it is killed.
"""
