#!/bin/bash
# A GlusterFS of two servers, each in a network of its own, mounted at DIR/mnt of a third:
#   unshare --mount --net --pid --fork --mount-proc tests/glusterfs/cluster.sh DIR
# Says `ready PID PID` of the servers' namespaces, and ends with its standard input; all that was
# started is in the pid namespace and ends with it.
set -euo pipefail

readonly dir=$1 volume=gv0

# A server's networks, and folders that glusterd has one of a machine.
server() { # <its number>
    local -r name=s$1
    mkdir -p "$dir/$name"
    unshare --mount --net sleep infinity &
    pids[$1]=$!
    # Until unshare has made the namespaces, the process is still in ours.
    until [[ $(readlink "/proc/${pids[$1]}/ns/net") != $(readlink /proc/self/ns/net) ]]; do sleep 0.01; done
    ip link add "$name" type veth peer name eth0 netns "${pids[$1]}"
    ip link set "$name" master bridge0 up
    inside "$1" ip link set lo up
    inside "$1" ip address add "10.0.0.$1/24" dev eth0
    inside "$1" ip link set eth0 up
    # shellcheck disable=SC2016 # the inner shell's
    inside "$1" bash -ec '
        for folder in /var/lib/glusterd /var/log /run; do mount -t tmpfs tmpfs "$folder"; done
        mkdir -p /run/gluster /var/log/glusterfs
        exec glusterd --no-daemon --log-file=/var/log/glusterd.log' &
}

inside() { # <server's number> <command>...
    nsenter --target "${pids[$1]}" --mount --net "${@:2}"
}

gluster_says() { # <server's number> <words>...
    inside "$1" timeout 20 gluster --mode=script "${@:2}" 2>&1
}

declare -a pids
for folder in /var/log /run; do mount -t tmpfs tmpfs "$folder"; done
mkdir -p /run/gluster /var/log/glusterfs "$dir/mnt"
# Each server asks for the names of the others' addresses, and nobody else would answer.
printf '127.0.0.1 localhost\n10.0.0.1 s1\n10.0.0.2 s2\n10.0.0.3 client\n' >/run/hosts
mount --bind /run/hosts /etc/hosts
mount --bind /dev/null /etc/resolv.conf
ip link set lo up
ip link add bridge0 type bridge
ip address add 10.0.0.3/24 dev bridge0
ip link set bridge0 up
server 1
server 2
for number in 1 2; do
    # Asked earlier, gluster may wait for ever.
    until [[ -S /proc/${pids[number]}/root/run/glusterd.socket ]]; do sleep 0.1; done
    until gluster_says "$number" pool list >/dev/null; do sleep 0.1; done
done
gluster_says 1 peer probe s2 >&2
until gluster_says 1 pool list | grep -q 's2.*Connected'; do sleep 0.1; done
# A probed peer takes a moment to be one of the cluster.
until gluster_says 1 volume create "$volume" s1:"$dir/s1/brick" s2:"$dir/s2/brick" force >&2; do sleep 0.2; done
gluster_says 1 volume start "$volume" >&2
gluster_says 1 volume profile "$volume" start >&2
glusterfs --volfile-server=s1 --volfile-id="$volume" "$dir/mnt"
until [[ -r $dir/mnt/.meta/version ]]; do sleep 0.1; done
echo "ready ${pids[1]} ${pids[2]}"
read -r _ || :
umount "$dir/mnt"
