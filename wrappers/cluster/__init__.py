"""A throwaway Slurm cluster on this machine, its virtual nodes included.

`cluster` starts, finds and stops it; `config` is its shape and the text of its configuration files.
`daemon_start` starts the daemons one after the other, `daemons` records every process in the cluster's
folder, so that `down` finds them. `guest` is a virtual node, by QEMU with KVM (`guest_kvm`) or by User
Mode Linux (`guest_uml`); `guest_start` starts it and its slurmd. `network` makes the private network,
`nfs` a file server.

It needs no root without virtual nodes. A process is ended only if its id, start time and boot are those
recorded. Nothing outside the cluster's folder, namespace and device names is changed.
"""
