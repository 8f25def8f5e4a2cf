#!/bin/bash
# Containers of unshare(1). Part of steelyard.sh; implements launcher_interface.sh.
#
# There is no image: it measures what namespaces alone cost. It works for ordinary users where the kernel
# admits user namespaces. An ordinary user's network has a loopback device only, which is tagged; root gets
# the networks of launcher_network.sh. The container ends with its parent (--kill-child).
# shellcheck disable=SC2034,SC2153 # SY_* are those of launcher.sh

# Private mounts, processes, System V objects, shared memory and host name; the files are the node's.
# Process ids begin at 1 in each container, and Open MPI names its files by them. So each container has
# a private /dev/shm, and Open MPI's session folder in it.
sy_unshare_command() {
    # shellcheck disable=SC2016 # for the shell inside
    local inside='mount -t tmpfs -o "mode=1777,size=$0" tmpfs /dev/shm' hosts=''
    SY_LAUNCHER_COMMAND=(unshare --mount --pid --fork --kill-child --mount-proc --ipc --uts)
    export SY_MPI_TMP=/dev/shm
    if [[ -n ${SY_NETWORK_NS:-} ]]; then
        hosts=$(sy_launcher_write_hosts) || return
        # shellcheck disable=SC2016
        inside+=' && mount --bind "$1" /etc/hosts && shift'
    fi
    if ((EUID != 0)); then
        # mount(8) needs root; the second namespace maps root back to the user.
        SY_LAUNCHER_COMMAND+=(--user --map-root-user)
        if [[ $SY_LAUNCHER_NETWORK == bridge ]]; then
            sy_log "$SY_LAUNCHER: an ordinary user's network has a loopback device only"
            sy_tag launcher_network loopback
            SY_LAUNCHER_COMMAND+=(--net)
            inside+=' && ip link set lo up'
        fi
        inside+=" && exec unshare --user --map-user=$EUID --map-group=$(id -g)"
    else
        inside+=' && exec'
    fi
    SY_LAUNCHER_COMMAND+=(sh -c "$inside"' "$@"' "$(sy_launcher_shm_bytes)" ${hosts:+"$hosts"}
    "${SY_LAUNCHER_INSIDE[@]}")
    sy_launcher_apply_limits
}
