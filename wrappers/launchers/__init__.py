"""Containers in which runs are executed: bare, docker, podman, apptainer, LXC, systemd-nspawn.

`launcher_grammar` is the grammar KIND[:NAME][,option=value] and its canonical text
(docs/launchers.md). `launcher_checks` finds what a launcher needs of a machine and who may use it;
it starts an empty container to test what the machine's configuration refuses.
`image_build` makes a root file system of Debian packages; `image_contents` finds the programs and
libraries that are missing from an image.

Checks return one sentence that says what to do, or None. The containers of a run are started and
removed by jobscripts/lib/launcher.sh, not by this room."""
