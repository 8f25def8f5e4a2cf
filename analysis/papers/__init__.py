"""Comparison of studies with four papers: `steelyard report STUDY --beside NAME`.

A paper is a folder: `claims.csv` (one claim per line: which conditions of a study it compares, and
the range in which the interval of their difference must be), `contradictions.csv` (contradictions
within the paper), its printed tables, and a Python module that selects the runs of a study that
measure the same as a row of these tables, and draws the paper's own figures. README.md has the
sources and the columns.

`conditions` describes each condition of a study in the terms of the claims, and finds the
conditions that differ only in what a claim compares. `verdicts` judges their interval,
`printed_comparisons` finds the study's own value for a printed number, and `report` lists the four
papers and makes page, JSON, tables and text of both.

A verdict depends on 95 % intervals alone: the claim holds, does not hold, or cannot be judged; then
the report lists the missing conditions or values. Numbers of the paper come from its own machines.
The report lists where a study's sizes differ from the paper's, and does not judge the difference.

jungels2012 also has `preset`: the report of the thesis' own 6,581 measurements.
"""
