"""Four papers beside a study of your own: `steelyard report STUDY --beside NAME`.

A paper is a folder: `claims.csv` (a claim a line: which conditions of a study it compares, and where
the interval of their difference has to be), `contradictions.csv` (what in the paper does not agree with
itself), the tables that it prints, and a Python module that says which runs of a study measure the same
as a row of these tables, and draws the paper's own figures. README.md has the sources and the columns.

`conditions` puts each condition of a study into the words of the claims. `pairs` finds the conditions
that differ only in what a claim compares, `verdicts` judges their interval, `printed` finds the study's
own value for a printed number, `report` makes page, JSON, tables and text of both. Its `PAPERS` are the
four papers.

A verdict rests on 95 % intervals alone: the claim holds, does not hold, or cannot be told, and then the
report says which conditions or values are missing. Numbers of the paper are of its own machines; the
report says where a study's sizes differ from the paper's, and does not judge the difference.

jungels2012 has another part, `preset`: the report of the thesis' own 6,581 measurements.
"""
