"""Report, tables and exports of a collected study.

`page` renders one HTML file that opens offline, from `answer` (the result in sentences), `tables`
(also of tags and programs), `slopes`, `tolerated_levels`, `scaling`, `network`, `latency_share`,
`node_comparisons` and `figures`. `terminal_text` prints a summary on a terminal, `export` has every
number for programs (JSON) and writes tables as files, those in LaTeX by `latex_tables`.
`history_text` and `history_document` report a history. A paper adds sections (`page.Extra`);
calibration.html.j2 is the page of `steelyard calibrate`.

The report reads the database only. Every number has a unit, the number of its runs and a link to
them. Text from users is escaped.
"""
