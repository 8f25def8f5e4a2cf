#!/bin/busybox sh
# shellcheck shell=dash
# First process of an emulated machine: the root of the host, which nobody can write to, then
# guest_init.sh in it. From the kernel's command line: what that wants, and SY_SOURCE.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
modprobe virtio_pci
modprobe virtiofs
if mount -t virtiofs -o ro root /host; then
    umount /proc
    exec switch_root /host /bin/sh "$SY_SOURCE/tests/guests/layouts/guest_init.sh"
fi
echo o >/proc/sysrq-trigger
sleep 60
