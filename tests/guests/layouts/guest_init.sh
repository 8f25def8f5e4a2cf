#!/bin/sh
# First process of a virtual node (User Mode Linux) that is a cluster of one node, on the root that
# it was given: a memory overlay above it, kernel modules, cgroups in the layout that is asked for,
# a device to shape with somebody at its other end. Then inside.sh, whose exit code goes to OUT/rc.
# From the kernel's command line: SY_LAYOUT (v1, v2, v2-ids, none), SY_SOURCE (this checkout, as
# seen from that root), SY_OUT (a folder of the host's).
set -eu
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
readonly modules="${SY_MODULES:-/usr/lib/uml/modules}"

# Of the host's: an emulated machine has all of them in its root.
mount_host_folder() { # FOLDER WHERE
    if [ "$is_uml" ]; then mount -t hostfs -o "$1" none "$2"; else mount --bind "$1" "$2"; fi
}

make_root() {
    mount -t proc proc /proc
    is_uml=$(grep "User Mode Linux" /proc/cpuinfo || :)
    mount -t tmpfs -o mode=755 tmpfs /run
    mkdir -p /run/upper /run/work /run/root /run/kmod/lib /run/kmod/modules
    mount_host_folder "$modules" /run/kmod/modules
    ln -s /run/kmod/modules /run/kmod/lib/modules
    # The kernel calls it in the root of before, whatever is mounted above.
    printf '#!/bin/sh\nexec /sbin/modprobe -d /run/kmod "$@"\n' >/run/kmod/modprobe
    chmod 755 /run/kmod/modprobe
    echo /run/kmod/modprobe >/proc/sys/kernel/modprobe
    modprobe -d /run/kmod overlay
    mount -t overlay -o lowerdir=/,upperdir=/run/upper,workdir=/run/work overlay /run/root
    cd /run/root
    mount --move /proc proc
    mount -t sysfs sysfs sys
    mount -t devtmpfs devtmpfs dev
    mkdir -p dev/pts dev/shm mnt lib/modules
    mount -t devpts -o gid=5,mode=620 devpts dev/pts
    mount -t tmpfs -o mode=1777 tmpfs dev/shm
    ln -s /proc/self/fd dev/fd
    mount -t tmpfs -o mode=755 tmpfs run
    rm -rf "lib/modules/$(uname -r)"
    mkdir -p "lib/modules/$(uname -r)" run/out
    mount_host_folder "$modules/$(uname -r)" "lib/modules/$(uname -r)"
    if [ "$is_uml" ]; then mount_host_folder "$SY_OUT" run/out; else mount -t virtiofs out run/out; fi
    rm -f .dockerenv
    mount --move . /
}

# Version 1 as on hosts of its time: a hierarchy for each controller, and version 2 beside them
# without any.
mount_cgroups() {
    case $SY_LAYOUT in
    v1)
        mount -t tmpfs -o mode=755 cgroup /sys/fs/cgroup
        for name in cpu,cpuacct cpuset memory freezer devices; do
            mkdir "/sys/fs/cgroup/$name"
            mount -t cgroup -o "$name" cgroup "/sys/fs/cgroup/$name" || echo "no cgroup v1: $name"
        done
        ln -s cpu,cpuacct /sys/fs/cgroup/cpuacct
        ln -s cpu,cpuacct /sys/fs/cgroup/cpu
        mkdir /sys/fs/cgroup/unified
        mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
        ;;
    *)
        mount -t cgroup2 cgroup2 /sys/fs/cgroup
        mkdir /sys/fs/cgroup/system.slice
        # pids comes last, and 22.05 does not see the last one.
        for above in /sys/fs/cgroup /sys/fs/cgroup/system.slice; do
            echo "+cpu +memory +pids" >"$above/cgroup.subtree_control"
        done
        ;;
    esac
}

# 10.99.0.2 is the node, 10.99.0.1 somebody else.
make_network() {
    hostname layout
    echo "127.0.0.1 localhost layout" >/etc/hosts
    ip link set lo up
    ip netns add peer
    ip link add eth9 type veth peer name wire netns peer
    ip addr add 10.99.0.2/24 dev eth9
    ip link set eth9 up
    ip -n peer addr add 10.99.0.1/24 dev wire
    ip -n peer link set wire up
    ip route add default via 10.99.0.1
    echo "0 2147483647" >/proc/sys/net/ipv4/ping_group_range
}

if [ "${1:-}" = inside ]; then
    mount_cgroups
    make_network
    exec bash "$SY_SOURCE/${SY_INSIDE:-tests/guests/layouts/inside.sh}"
fi
make_root
rc=0
chroot . "$0" inside </dev/null || rc=$?
echo "$rc" >run/out/rc
sync
echo o >proc/sysrq-trigger
sleep 60
