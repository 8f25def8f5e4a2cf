#!/bin/busybox sh
# shellcheck shell=dash
# First process of a virtual node of QEMU: the modules, the host's own / by virtiofs, then init.sh in
# it. The kernel's command line has init.sh's variables.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
for module in /modules/*; do
    insmod "$module"
done
if mount -t virtiofs -o ro root /host; then
    umount /proc
    exec switch_root /host /bin/sh "$SY_DIR/guests/init.sh"
fi
echo o >/proc/sysrq-trigger
sleep 60
