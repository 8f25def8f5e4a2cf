"""Statistics: pure functions on numbers.

`basics` has means (harmonic ones for rates), spreads, intervals (Student's, Fieller's), outliers
and proportions. `overhead` compares a condition with the baseline; `overhead_verdict` words the
result by `hypothesis_tests` (Welch, Holm, TOST) and `effect_size`. `grouped_runs` has means and
overheads of runs that are independent only by job or by block. `slope` fits a factor; `scaling` has
speed-ups, efficiencies, the best scale and the fitted laws. `planning` computes repeats and power.
`drift_and_warm_up` and `bimodality` find what violates the assumptions. `change_points` follows a
figure over sessions, by `change_point_test`, from `session_means`. `number_format` prints numbers
with units.

`margin_crossing` bounds how far a factor may go; `latency_share` and `node_contrasts` serve one
table each.

The functions know no database and no study. What cannot be computed from the values is None and has
a reason: of two runs a side the overhead is known, its interval is not.
"""
