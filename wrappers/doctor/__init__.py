"""`steelyard doctor`: is everything in place, on this node and on others?

`local_node` runs `steelyard-node doctor`, which finds and judges in C, and adds what killed runs left.
`remote_nodes` runs the same program on many nodes through their scheduler or ssh, and `node_groups`
prints nodes with equal results once and the others by their difference. `openpbs` and `torque` check
what the node program cannot know: hooks, prologues and their settings. `capabilities` derives from all
checks what a user can do on this machine.

A check changes nothing. A node that does not answer is a result with a reason, and one node that hangs
delays no other.
"""
