#!/bin/busybox sh
# shellcheck shell=dash
# First process of a machine that has only these files: cases.sh, then all that it has left in /out
# goes through the second serial line, and the machine is switched off.
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmpfs /run
mount -t bpf bpf /sys/fs/bpf
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ip link set lo up
hostname guest
echo 2 >/proc/sys/kernel/unprivileged_bpf_disabled
mkdir -p /out /tmp
sh /bin/cases.sh >/out/log 2>&1
echo $? >/out/rc
dmesg >/out/dmesg
stty -F /dev/ttyS1 raw
tar -C /out -c . >/dev/ttyS1
echo o >/proc/sysrq-trigger
sleep 60
