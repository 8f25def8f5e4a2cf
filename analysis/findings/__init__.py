"""Findings: what a reader must know before trusting the numbers of a study.

A rule reads a summary and yields findings; each kind has a code (SY01 …), a severity and an advice
(`finding`). The rules are grouped by subject: `runs`, `comparisons`, `spread`, `drift_and_warm_up`,
`nodes`, `records` (and other sources), `network`. `registry.find_all()` applies them all; as a
program `registry` writes their list into docs/findings.md (`make docs`; a test refuses a stale
page).

A rule reads the summary only. It neither removes a run nor changes a figure: outliers are marked.
"""
