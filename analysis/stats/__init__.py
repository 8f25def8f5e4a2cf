"""Statistics: pure functions on numbers.

`basics` has means, spreads, intervals (Student's, Fieller's) and outliers. `overhead` compares a
condition with the baseline, `overhead_verdict` words the result by `equivalence` (TOST),
`significance_tests` (Welch, Holm) and `effect_size`. `harmonic_mean` is that of rates.
`grouped_mean` and `grouped_overhead` handle runs that are independent only by job or by block.
`slope` fits a factor; `scaling` has speed-ups, efficiencies and the best scale, and `scaling_laws`
the laws fitted to them. `planning` computes repeats and power. `drift`, `warm_up` and `bimodality`
find what violates the assumptions. `change_points` follows a figure over sessions, by
`change_point_test`. `number_format` prints numbers with units.

`margin_crossing` bounds how far a factor may go; `session_means`, `latency_share`, `node_contrasts`
and `proportion` serve one table each.

The functions know no database and no study. What cannot be computed from the values is None and has
a reason: of two runs a side the overhead is known, its interval is not.
"""
