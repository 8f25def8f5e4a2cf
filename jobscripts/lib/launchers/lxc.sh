#!/bin/bash
# Containers of LXC. Part of steelyard.sh; implements launcher_interface.sh.
#
# A run uses the configuration of an existing, stopped container, and does not start or change that
# container: lxc-execute starts a second one with its root folder, which several runs may share. It has its
# own /dev/shm, /etc/hosts and /proc. The network is the node's, a namespace of ours, or what the
# configuration has; a configuration with another network than the requested one is refused with 4.
# shellcheck disable=SC2034,SC2153 # SY_* are those of launcher.sh

# Uses the configuration of an existing, stopped container; several runs share its root folder.
sy_lxc_command() {
    local path name base kind hosts
    hosts=$(sy_launcher_write_hosts) && sy_leftover_mark lxc "$SY_LAUNCHER_NAME" || return
    base=$(lxc-config lxc.lxcpath)/$SY_LAUNCHER_IMAGE
    # In a new session: lxc-execute would make the user's terminal raw, in which Ctrl-C is a character.
    SY_LAUNCHER_COMMAND=(setsid lxc-execute --name="$SY_LAUNCHER_NAME" --rcfile="$base/config")
    # Limits and the benchmark's tools are read from /proc.
    grep -qE '^[[:space:]]*lxc\.mount\.auto[[:space:]]*=.*proc' "$base/config" 2>/dev/null ||
        SY_LAUNCHER_COMMAND+=(--define=lxc.mount.auto=proc:mixed)
    for path in "${SY_LAUNCHER_PATHS[@]}"; do
        kind='dir'
        [[ -d $path ]] || kind='file'
        path=$(sy_lxc_escape_path "$path")
        SY_LAUNCHER_COMMAND+=(--define="lxc.mount.entry=$path ${path#/} none bind,create=$kind 0 0")
    done
    # Its own shared memory, for the reason that unshare has one.
    SY_LAUNCHER_COMMAND+=(
        --define="lxc.mount.entry=$(sy_lxc_escape_path "$hosts") etc/hosts none bind,ro,create=file 0 0"
        --define="lxc.mount.entry=tmpfs dev/shm tmpfs mode=1777,size=$(sy_launcher_shm_bytes),create=dir 0 0")
    export SY_MPI_TMP=/dev/shm
    # A name alone: its value is taken from our environment.
    while read -r name; do
        SY_LAUNCHER_COMMAND+=(--define="lxc.environment=$name")
    done < <(printf 'SY_ROLE\n' && sy_launcher_list_variables)
    [[ -z ${SY_LAUNCHER_MEMORY_BYTES:-} ]] || SY_LAUNCHER_COMMAND+=(
        --define="lxc.cgroup.memory.limit_in_bytes=$SY_LAUNCHER_MEMORY_BYTES"
        --define="lxc.cgroup2.memory.max=$SY_LAUNCHER_MEMORY_BYTES")
    # `none`: the network of the process that starts it.
    if [[ $SY_LAUNCHER_NETWORK == host || -n ${SY_NETWORK_NS:-} ]]; then
        SY_LAUNCHER_COMMAND+=(--define=lxc.net.0.type=none)
    else
        sy_lxc_check_network || return
    fi
    SY_LAUNCHER_COMMAND=(taskset --cpu-list "$SY_LAUNCHER_CPUSET" "${SY_LAUNCHER_COMMAND[@]}"
        -- "${SY_LAUNCHER_INSIDE[@]}")
    [[ -z ${SY_NETWORK_NS:-} ]] || sy_launcher_enter_network
}

# Escape a path as fstab(5) does.
sy_lxc_escape_path() { # <path>
    local path=$1
    path=${path//\\/\\134} path=${path// /\\040} path=${path//$'\n'/\\012}
    printf '%s' "${path//$'\t'/\\011}"
}

# Check that the container's configuration has the requested network, with its device and addresses.
sy_lxc_check_network() {
    local type wanted=$SY_LAUNCHER_NETWORK
    [[ $wanted != bridge ]] || wanted=veth
    type=$(sy_lxc_read_setting type)
    if [[ $type == "$wanted" ]]; then
        [[ $type != phys ]] || sy_device_claim_for_lxc "$(sy_lxc_read_setting link)"
        return
    fi
    sy_log "$SY_LAUNCHER: the configuration of $SY_LAUNCHER_IMAGE on $SY_THIS_NODE has lxc.net.0.type = ${type:-(nothing)}: say there lxc.net.0.type = $wanted, lxc.net.0.link, lxc.net.0.flags = up and an address"
    return 4
}

sy_lxc_read_setting() { # <key below lxc.net.0>
    lxc-info --name="$SY_LAUNCHER_IMAGE" --config="lxc.net.0.$1" --no-humanize 2>/dev/null
}

sy_lxc_pid() {
    lxc-info --name="$SY_LAUNCHER_NAME" --pid --no-humanize
}
