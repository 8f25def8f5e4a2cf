"""Figures, each drawn from a summary or a history.

A module draws one kind of figure: `forest_plot`, `bar_chart`, `box_plot`, `line_plot`, `heat_map`,
`mpi_time_shares`, `run_series`, `iterations`, `energy_time`, `scaling`, `node_plot`, `rtt`,
`history`; from samples `run_time_series`, `netem_trace` and `hypervisor_time_series`. Most return a
`drawing.Drawing`: the figure, its caption and the rows of its CSV file. `drawing` has style and
saving, `short_labels` and `point_labels` fit names into a figure, `factor_figure_choice` chooses
the figures of a numeric factor.

Figures compute no statistics. The same data give the same bytes. A figure without data is
absent.
"""
