"""Network conditions: the interface to `steelyard-node netem`, and descriptions of conditions.

`program` runs `steelyard-node netem` and `cache`. It checks a specification
(`parse_specification`), applies the conditions around a body (`apply_conditions`), lists the states
of this node, and turns the program's exit code into an exception: 2 wrong usage, 3 missing, 4
cannot be applied. `kernel_support` tests in a fresh network namespace which modules this kernel
has. `sites` reads a file of sites and links and compiles it to the file that nodes read.
`condition_descriptions` describes a specification and a document of docs/formats.md part 9 in
sentences.

Whatever is applied needs root, and is not checked against the policy: that is for jobs. An error
before the body means that nothing has changed. The conditions are undone when the body ends, also
by SIGTERM; if the process is killed, its sampler, the node's next job or `steelyard netem clear`
undoes them.

No module here parses the grammar or calls tc: C does (plugins/node/netem). Whether a run is valid
is decided there, too.
"""
