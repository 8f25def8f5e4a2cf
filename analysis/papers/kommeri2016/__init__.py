"""J. Kommeri and others: what distant data cost an analysis, in seconds and in joules.

The room compares a study with this paper: with its claims, its three printed tables and its three
figures. claims.csv, contradictions.csv and table1.csv to table3.csv have what the paper prints;
`paper` selects the runs that measure the same, and draws.

Claims are of the kinds that all papers share (overhead, order), and of two own ones. `slope` judges
the slope of run time over delay, and needs a line of three delays or more. `throughput_share`
judges which share of a difference comes from throughput, by the model of docs/report.md.

- Table 1: run time of one job and of two at once, at 100 Mbit/s and 1 Gbit/s.
- Table 2: limits of the CVMFS cache: fetched bytes and run time. An empty cell: the load cannot
  run.
- Table 3: round-trip times with one virtual machine and with ten, from all readings of a run.
- Figure 1: power and traffic over time. It needs samples.
- Figures 2 and 3, as one: run time and energy over the added round trip. They need at least two
  delays that differ in nothing else, each with enough runs for an interval. Without energy the
  right half says that none was measured.

Tables 1 and 3 and the claims on delay are of the analysis of the benchmark xrootd, or of the user's
program, without background traffic; a plain copy (xrdcp) does not count. The paper's figures have
no printed numbers: a study's figure is drawn without them.
"""
