#!/bin/sh
# First process of a virtual node (with QEMU after init_kvm.sh). It mounts the host's / with an overlay in
# memory and the shared folders, sets up the network and munged, and serves the host's requests.
# From the kernel's command line: SY_NAME, SY_DIR (the cluster's folder), SY_ADDRESS (with /24),
# SY_MODULES (the host's folder of its kernel's modules).
set -eu
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
self=$SY_DIR/guests/$SY_NAME

# The new root: changes of system files stay in memory and end with the guest.
make_root() {
    mount -t proc proc /proc
    mount -t tmpfs -o mode=755 tmpfs /run
    mkdir -p /run/upper /run/work /run/root /run/kmod/lib
    ln -s "$SY_MODULES" /run/kmod/lib/modules # a host without a kernel of its own has no /lib/modules
    modprobe -d /run/kmod overlay
    mount -t overlay -o lowerdir=/,upperdir=/run/upper,workdir=/run/work overlay /run/root
    cd /run/root
    mount --move /proc proc
    mount -t sysfs sysfs sys
    mount -t devtmpfs devtmpfs dev
    mkdir -p dev/pts dev/shm mnt lib/modules
    mount -t devpts -o gid=5,mode=620 devpts dev/pts
    mount -t tmpfs -o mode=1777 tmpfs dev/shm
    ln -s /proc/self/fd dev/fd # bash: <(…)
    ln -s fd/0 dev/stdin && ln -s fd/1 dev/stdout && ln -s fd/2 dev/stderr
    mount -t tmpfs -o mode=755 tmpfs run
    pivot_root . mnt
    umount -l mnt
    release=$(uname -r)
    [ -d "/lib/modules/$release" ] || ln -sfn "$SY_MODULES/$release" "/lib/modules/$release"
    rm -f /.dockerenv # the host may be a container; this guest is not
}

# Mount the host's folders that jobs write to. Files belong to their user with virtiofs (QEMU) and bindfs,
# to root with hostfs (User Mode Linux). The cluster's folder is mounted last: it may be in another one.
mount_shares() {
    while read -r how folder; do
        mkdir -p "$folder"
        case $how in
        virtiofs)
            mkdir -p /run/files
            mountpoint -q /run/files || mount -t virtiofs files /run/files
            mount --bind "/run/files$folder" "$folder"
            ;;
        hostfs) mount -t hostfs -o "$folder" none "$folder" ;;
        bindfs)
            below=/run/shares$folder
            mkdir -p "$below"
            mount -t hostfs -o "$folder" none "$below"
            modprobe fuse
            bindfs -o nonempty "$below" "$folder"
            ;;
        esac
    done <"$self/shares"
    # Sockets and pid files of this node stay in it.
    for folder in run spool; do
        mount -t tmpfs -o mode=755 tmpfs "$SY_DIR/$folder"
    done
    mkdir -p "$SY_DIR/run/steelyard" "$SY_DIR/spool/$SY_NAME"
    mount --bind "$SY_DIR/etc/cgroup.guest.conf" "$SY_DIR/etc/cgroup.conf"
}

set_up_system() {
    echo "$SY_NAME" >/proc/sys/kernel/hostname
    cp "$SY_DIR/etc/hosts" /etc/hosts
    tr -d - </proc/sys/kernel/random/uuid >/etc/machine-id
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    mkdir -p /sys/fs/cgroup/system.slice # slurmd looks for systemd's
    ip link set lo up
    ip link set eth0 name vec0 2>/dev/null || [ -e /sys/class/net/vec0 ] # QEMU's device, UML's
    ip link set vec0 up
    ip addr add "$SY_ADDRESS" dev vec0
    # A window larger than 64 KB from the start: else transfers over a delay crawl.
    echo "4096 8388608 16777216" >/proc/sys/net/ipv4/tcp_rmem
    echo "0 2147483647" >/proc/sys/net/ipv4/ping_group_range
    # The host sees what a job writes within a second, not after thirty.
    echo 50 >/proc/sys/vm/dirty_writeback_centisecs
    echo 100 >/proc/sys/vm/dirty_expire_centisecs
}

start_munged() {
    mkdir -p /run/munge
    munged --force --socket="$SY_DIR/run/munge.socket" --key-file="$SY_DIR/private/munge.key" \
        --pid-file=/run/munge/munged.pid --seed-file=/run/munge/munged.seed \
        --log-file="$SY_DIR/log/munged.$SY_NAME.log"
}

# Run a request, requests/ID: command with in, out and err; rc is written last.
run_request() { # ID
    folder=$self/requests/$1
    rc=0
    setsid sh "$folder/command" <"$folder/in" >"$folder/out" 2>"$folder/err" || rc=$?
    echo "$rc" >"$folder/rc.new"
    mv "$folder/rc.new" "$folder/rc"
}

# Serve requests. Their ids arrive as lines on the console, which is a FIFO on the host.
serve_requests() {
    stty -echo </dev/console
    : >"$self/ready"
    while IFS= read -r id; do
        case $id in
        off)
            sync
            echo o >/proc/sysrq-trigger
            ;;
        *[!0-9]* | '') ;;
        *) (run_request "$id" &) ;; # an orphan: the first process reaps it
        esac
    done </dev/console
}

make_root
mount_shares
set_up_system
start_munged
export SLURM_CONF="$SY_DIR/etc/slurm.conf" STEELYARD_RECORD_DIR="$SY_DIR/records"
export STEELYARD_CLUSTER_DIR="$SY_DIR"
unset SY_ADDRESS SY_MODULES TERM
serve_requests &
wait # forever, and reaps orphans
echo o >/proc/sysrq-trigger
