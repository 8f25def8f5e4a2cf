"""C. Ruiz, E. Jeanvoine, L. Nussbaum: what containers cost MPI programs."""
