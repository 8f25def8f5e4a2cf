#!/bin/bash
# A dedicated device of the node for a container while the run lasts (network=phys). Part of
# steelyard.sh; called by launcher_network.sh, and by launchers/lxc.sh: LXC moves the device itself.
#
# The device is moved into a named network namespace, /run/netns/steelyard-PID-START. So it survives
# when the run is killed, and the sweep of leftovers returns it to the node
# (launcher_leftover_resources.sh). A device that the node itself uses is not moved.

# Mark the device as this run's, or log why it cannot be. Called under the lock: another run may request
# the same device.
sy_device_claim() { # <device>
    local reason state
    if ! reason=$(sy_device_check "$1"); then
        sy_log "$SY_LAUNCHER: $reason"
        return 4
    fi
    state=$(sy_leftover_device_state "$1") || return
    SY_DEVICE=$1 SY_DEVICE_INDEX=${state%% *}
    sy_leftover_mark phys "$SY_LAUNCHER_NAME $1 $state$(sy_device_read_settings "$1")" || return
    sy_tag launcher_device "$1"
}

# Check that a container can have the device. False: prints the reason and what to do, in one sentence.
sy_device_check() { # <device>
    local found job
    if [[ ! $1 =~ ^[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}$ ]]; then
        printf "'%s' is no name of a network device" "$1"
    elif found=$(sy_device_find_owner "$1"); then
        job=${found##* }
        printf 'device %s of %s is in the container of another run (process %s%s) until that has ended' \
            "$1" "$SY_THIS_NODE" "${found%% *}" "$([[ $job == - ]] || printf ', job %s' "$job")"
    elif ! found=$(ip -oneline link show dev "$1" 2>/dev/null) || [[ ! $found =~ ^[0-9]+:\ $1[@:] ]]; then
        printf '%s has no device %s: expected one of %s' "$SY_THIS_NODE" "$1" "$(sy_device_list_names)"
    elif [[ $found == *link/loopback* ]]; then
        printf '%s is the loopback device of %s: name another' "$1" "$SY_THIS_NODE"
    elif [[ $found =~ \ master\ ([^ ]+) ]]; then
        printf 'device %s of %s belongs to %s: name another, or say ip link set %s nomaster' \
            "$1" "$SY_THIS_NODE" "${BASH_REMATCH[1]}" "$1"
    elif found=$(sy_device_find_node_use "$1") && [[ -n $found ]]; then
        printf '%s itself uses its device %s (%s), which would cut it off: name one that it does not use, or take that away' \
            "$SY_THIS_NODE" "$1" "$found"
    else
        return 0
    fi
    return 1
}

# Print `PID … JOB` of the run of this network namespace that has the device.
sy_device_find_owner() { # <device>
    local mark
    while IFS= read -r mark; do
        [[ -n $mark && $(sy_leftover_network_state "$mark") == here ]] && sed -n '1s/^owner //p' "$mark" && return
    done <<<"$(grep -lsE "^phys [^ ]+ ${1//./\\.} " "$SY_LEFTOVER_DIR"/steelyard-*-*)"
    return 1
}

# Print the node's devices but lo, commas between.
sy_device_list_names() {
    local name list=''
    while IFS=': ' read -r _ name _; do
        [[ $name == lo ]] || list+=${list:+, }${name%%@*}
    done <<<"$(ip -oneline link show)"
    printf '%s' "${list:-none}"
}

# Print the first use that the node makes of the device: an address or a route other than the automatic
# ones of IPv6, a device on top of it, a queueing discipline that was added.
sy_device_find_node_use() { # <device>
    local line path
    line=$(ip -oneline address show dev "$1" | grep -vE ' inet6 fe80:' | grep -oE ' inet6? [^ ]+')
    [[ -z $line ]] || { printf 'the address %s' "${line##* }" && return; }
    line=$({ ip route show table all dev "$1" && ip -6 route show table all dev "$1"; } 2>/dev/null |
        grep -vE '^((local|anycast|multicast) )?(fe80:|ff00:)')
    line=${line%%$'\n'*}
    [[ -z $line ]] || { printf 'the route %s' "${line% }" && return; }
    for path in /sys/class/net/"$1"/upper_*; do
        [[ ! -e $path ]] || { printf 'the device %s on top of it' "${path##*/upper_}" && return; }
    done
    line=$(tc qdisc show dev "$1" | grep -oE '^qdisc [^ ]+ [0-9a-f]+: ' | grep -v ' 0: ')
    line=${line#qdisc } line=${line%%$'\n'*}
    [[ -z $line ]] || printf 'the queue %s' "${line% }"
}

# Print the device's settings that differ from the node's default: a device that enters a namespace gets
# the default settings there.
sy_device_read_settings() { # <device>
    local file value default
    for file in /proc/sys/net/ipv[46]/{conf,neigh}/"$1"/*; do
        value='' default=''
        { read -r value <"$file" && read -r default <"${file%/*/*}/default/${file##*/}"; } 2>/dev/null
        [[ ! $value =~ ^-?[0-9]+$ || $value == "$default" ]] || printf ' %s=%s' "${file#/proc/sys/net/}" "$value"
    done
}

# --- in a container --------------------------------------------------------------------------

# LXC itself moves the device and returns it. Its namespace gets a name later (sy_device_attach_lxc).
sy_device_claim_for_lxc() { # <device>
    sy_leftover_mark space "$SY_LAUNCHER_NAME" && sy_leftover_run_locked sy_device_claim "$1"
}

sy_device_attach_lxc() {
    local pid
    [[ -n ${SY_DEVICE:-} && -z ${SY_LAUNCHER_ACROSS:-} ]] || return 0
    if ! { pid=$(sy_kind pid) && ip netns attach "$SY_LAUNCHER_NAME" "$pid"; }; then
        sy_log "$SY_LAUNCHER: the network of its container on $SY_THIS_NODE cannot be held (see above)"
        return 4
    fi
    sy_device_wait_for_link
}

sy_device_move() { # <namespace>
    ip link set dev "$SY_DEVICE" netns "$1" && return
    sy_log "$SY_LAUNCHER: device $SY_DEVICE of $SY_THIS_NODE cannot be moved into a container (see above): name another"
    return 4
}

# Two machines take seconds to agree on a link.
sy_device_wait_for_link() {
    local line deadline reason='is not in its container'
    sy_set_time deadline "$((${SY_DEVICE_LINK_S:-15} * 1000000))"
    while line=$(ip -netns "$SY_LAUNCHER_NAME" -oneline link show | grep "^$SY_DEVICE_INDEX: "); do
        [[ $line != *LOWER_UP* ]] || return 0
        reason='has no link: is it plugged in, and the other end up?'
        ! sy_is_past "$deadline" || break
        sy_pause 0.1
    done
    sy_log "$SY_LAUNCHER: device $SY_DEVICE of $SY_THIS_NODE $reason"
    return 4
}

# At the run's end: log a device that was not returned unchanged.
sy_device_check_return() {
    [[ -n ${SY_DEVICE:-} ]] || return 0
    [[ -e $SY_LEFTOVER_DIR/$SY_LAUNCHER_NAME ]] || ! sy_leftover_device_state "$SY_DEVICE" >/dev/null || return 0
    sy_log "$SY_LAUNCHER: device $SY_DEVICE has not come back to $SY_THIS_NODE as it was: steelyard-left list, ip link and ip netns there say what is"
}
