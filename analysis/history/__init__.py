"""The history of a study over its sessions: when a figure changed, and what else changed then.

A session is one repetition of a whole study, in a separate study folder (docs/history.md). This
room reads from each session's database the values of its main figures, one per run as in the
report, and the state of each node: its machine tags, libraries and programs. Reading a thousand
databases takes a minute, so these extracts are cached in one file next to the sessions
(`session_extracts.py`, `extract_cache.py`); an extract is re-read when its database has changed.

`history.py` orders the sessions, finds change points in each figure
(`steelyard.analysis.stats.change_points`), combines those of one session into an event, and decides
whether a change is that of a single node. `machine_tags.py` makes the properties of a node
comparable between days, `state_changes.py` compares the nodes before and after an event: tags that
differ, on how many nodes, and nodes that left or joined.

The room computes and formats no text: sentences, JSON and JUnit are in `analysis/report`, the
figure is in `analysis/figures`. It never takes a change of a tag for the cause of a change of a
figure: it reports which tags changed in the same session.
"""
