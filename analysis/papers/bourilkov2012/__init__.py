"""D. Bourilkov and others: virtual clients of a file system, in turn and all at once.

The source is a poster: it prints no number and has figures and statements, so there are claims and
no printed tables. Most claims say that clients at once reach the rates that they have in turn,
added up: of a network (iperf3), of IOzone and of ROOT trees, with and without delay. Others compare
kinds of virtual nodes. Claims that no benchmark here can measure are listed and not judged.

`paper` draws the one figure: mean rates of the clients, stacked, in turn and at once. It needs the
factor `mode` with both levels, and values of single clients; an iteration of iperf3 is a client.
Bars of one length mean that clients do not hinder each other. What decides is the interval of the
ratio in the table of claims, not the figure.
"""
