"""What became of a study over its sessions: since when a figure differs, and what changed then.

A session is one repetition of a whole study, in a study folder of its own (docs/history.md). This room
reads of each session's database the values of its main figures, one a run as the report has them, and
the state of each node: its machine's tags, libraries and programs (`extract.py`). Reading a thousand
databases takes a minute, so extracts are cached in one file beside the sessions
(`extract_cache.py`); an extract is made again when its database has changed.

`history.py` puts the sessions in order, looks for change points in each figure
(`steelyard.analysis.stats.change_points`), and puts those of one session together into an event.
`state_changes.py` compares the nodes before and after an event: tags that differ, on how many nodes,
nodes that left or joined. `node_share.py` decides whether a change is that of a single node.

The room computes and states nothing in words: sentences, JSON and JUnit are in `analysis/report`, the
figure is in `analysis/figures`. It never takes a change of a tag for the cause of a change of a figure:
it reports which tags changed at the same session.
"""
