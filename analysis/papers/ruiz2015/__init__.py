"""C. Ruiz, E. Jeanvoine, L. Nussbaum: what containers cost MPI programs.

Their questions: does a newer kernel make programs in containers faster (Q1), what do containers
cost on one machine (Q2), and over several (Q3)? claims.csv has a line for each claim; all are of
the NAS Parallel Benchmarks. Besides the kinds that all papers share, `mean` judges a mean itself:
the time of MPI_Init.

Table 1 has shares and times of computation, communication and MPI_Init with 16 processes on eight
machines, in eight containers of one, and in shared memory. It needs the MPI profile of a run
(`profile = true`). `paper` selects the runs and draws the table as bars, as printed beside those of
the study.

Network: without delay or a limit of the rate. Loss is accepted only by the claims on TCP's
time-outs, since the paper's network lost packets by itself, and the report mentions it. Where a
study has the paper's class and ranks, only these runs count for a mean; other sizes are reported.
"""
