"""A throwaway Slurm cluster on this machine, with virtual nodes if requested.

`cluster` starts, finds and stops it; `cluster_config` has its options, paths, addresses and
configuration files. `daemons` starts the daemons one after the other, records every process in the
cluster's folder, so that `down` finds it, and ends them. `guest_control` controls a virtual node,
run by QEMU with KVM (`guest_kvm`, its files by `guest_kvm_virtiofs`) or by User Mode Linux
(`guest_uml`); `guest_start` starts it and its slurmd, and a file server. `network` creates the
private network.

Without virtual nodes it needs no root. Only processes are ended whose id, start time and boot are
recorded, or that have this cluster's SLURM_CONF or network namespace. Nothing outside the cluster's
folder, namespace and device names is changed."""
