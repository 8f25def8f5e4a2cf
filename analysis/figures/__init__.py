"""Figures, each drawn from a summary or a history.

A module draws one kind of figure: `forest_plot`, `bar_chart`, `box_plot`, `line_plot`, `heat_map`,
`mpi_time_shares`, `run_series`, `iterations`, `energy_time`, `scaling`, `node_plot`, `rtt`,
`history`; from samples `time_series` and `netem_trace`. Most return a `drawing.Drawing`: the
figure, its caption and the rows of its CSV file. `drawing` has style and saving, `label_fitting`
fits names into a figure. `analysis/report/figures.py` chooses a report's figures.

Figures compute no statistics. The same data give the same bytes. A figure without data is
absent.
"""
