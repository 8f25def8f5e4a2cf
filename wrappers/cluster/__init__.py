"""A throwaway Slurm cluster on this machine, with virtual nodes if requested.

`cluster` starts, finds and stops it; `cluster_config` has its options, paths and addresses,
`config_files` the text of its configuration files. `daemon_start` starts the daemons one after the
other, `cluster_state` records every process in the cluster's folder, so that `down` finds it,
`daemon_processes` ends them. `guest_control` controls a virtual node, run by QEMU with KVM
(`guest_kvm`, its files by `guest_kvm_virtiofs`) or by User Mode Linux (`guest_uml`); `guest_start`
starts it and its slurmd. `network` creates the private network, `nfs` a file server.

Without virtual nodes it needs no root. Only processes are ended whose id, start time and boot are
recorded, or that have this cluster's SLURM_CONF or network namespace. Nothing outside the cluster's
folder, namespace and device names is changed."""
