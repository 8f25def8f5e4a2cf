#!/bin/sh
# In a guest that is a node: mount what the guest `nfs` exports, by version 4.2 and by version 3.
# Both are one folder of the server; each mount has counters of its own.
set -eu
modprobe nfsv4
modprobe nfsv3
mkdir -p /nfs /nfs3
mount -t nfs4 -o vers=4.2 nfs:/ /nfs
mount -t nfs -o vers=3,proto=tcp,port=2049,mountproto=tcp,mountport=20048,nolock nfs:/srv/nfs /nfs3
