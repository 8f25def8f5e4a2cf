"""G. M. Jungels: virtual against physical nodes, for MPI programs and file systems.

The room has two uses.

- `report STUDY --beside jungels2012` compares a study with the thesis: claims.csv, and the means of
  appendices B to D. `paper` draws every run of both on physical and virtual nodes.
- `report --preset jungels2012` is the thesis' own report, without a study: `thesis_study`
  reads its 6,581 printed values as a study, `conclusions` tests each conclusion comparison by
  comparison, `measurement_findings` are SP01 to SP05, `thesis_figures` redraws its figures, and
  `measurements_report` makes page, JSON and tables.

A conclusion holds if all of its comparisons show it, by interval and Welch's test with Holm's
correction for all of them. Each is also tested with an effective n, since iterations that follow
each other may resemble each other. A series that the thesis prints twice counts once. Printed
averages that are not the means of the printed values are a finding, and are not used.

The CSV files have the values as printed (README.md); nothing is filled in or corrected.
"""
