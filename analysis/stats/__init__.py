"""Statistics: pure functions on numbers.

`basics` has means, spreads, intervals and outliers; `overhead` compares a condition with the baseline and
words the verdict, with `ratio` (Fieller), `rates` (harmonic means), `equivalence` (TOST) and
`significance_tests` (Welch, Holm, effect sizes). `grouped_mean` and `dependent_runs` are for runs that are
not independent: by job or by block. `slope` fits a factor; `scaling` has speed-ups, efficiencies and the best
scale, `scaling_laws` the laws fitted to them. `planning` computes repeats and power, `drift`, `warm_up` and
`bimodality` find what violates the assumptions. `change_points` follows a figure over sessions.
`number_format` prints numbers with units.

Functions know no database and no study. Too few values, or values without spread, give None and a reason,
never a number.
"""
