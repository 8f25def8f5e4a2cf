"""What the benchmarks xrootd and roottree share: input files, a server, clients that read them."""
