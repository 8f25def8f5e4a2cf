#!/bin/sh
# /etc/libvirt/hooks/qemu.d/steelyard (or hooks/qemu): libvirtd calls it with NAME OPERATION …, and waits
# for it. A virtual machine starts whatever becomes of its sampler.
case $2 in
started) systemctl --no-block start "steelyard-vm@$1.service" >/dev/null 2>&1 ;;
esac
exit 0
