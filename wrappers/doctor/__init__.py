"""`steelyard doctor`: checks whether this node and others are set up correctly.

`local_node` runs `steelyard-node doctor`, which checks and judges in C, and adds leftovers of
killed runs. `remote_nodes` runs the same program on many nodes through their scheduler or ssh, and
prints nodes with equal results once and the others by their difference. `openpbs` and `torque` check what the node program cannot know: hooks, prologues and their settings.
`capabilities` derives from all checks what a user can do on this machine.

A check changes nothing. A node that does not answer is a result with a reason, and a node that
hangs delays no other."""
