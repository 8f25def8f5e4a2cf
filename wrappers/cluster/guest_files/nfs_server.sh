#!/bin/sh
# In the guest `nfs`: export its disk as NFS versions 3 and 4 to the network $1. Version 3
# needs rpcbind, but nobody's statd: clients name both ports, and lock among themselves (nolock).
set -eu
mkdir -p /srv/nfs
mount /dev/[uv]*da /srv/nfs # ubda of User Mode Linux, vda of QEMU
chmod 1777 /srv/nfs
mount -t tmpfs tmpfs /var/lib/nfs
mkdir -p /var/lib/nfs/rpc_pipefs /var/lib/nfs/v4recovery /run/rpcbind
touch /var/lib/nfs/etab /var/lib/nfs/rmtab
mount -t rpc_pipefs rpc_pipefs /var/lib/nfs/rpc_pipefs
modprobe nfsd
mount -t nfsd nfsd /proc/fs/nfsd
exportfs -o rw,no_root_squash,fsid=0,insecure,no_subtree_check,async "$1:/srv/nfs"
rpcbind
rpc.mountd --port 20048 # the port registered for it, which clients name
rpc.nfsd 4
echo Y >/proc/fs/nfsd/v4_end_grace # no client has locks to reclaim
