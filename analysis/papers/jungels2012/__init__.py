"""G. M. Jungels: virtual against physical nodes, for MPI programs and file systems."""
