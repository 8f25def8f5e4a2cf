#!/bin/bash
# A device of the node that is a container's alone while the run lasts (network=phys). Part of
# steelyard.sh; called by launcher_network.sh, and by launchers/lxc.sh: LXC moves it itself.
#
# It is moved into a network namespace that has a name, /run/netns/steelyard-PID-START: so it stays there
# when the run is killed, where a virtual one would go with its namespace, and whoever removes what the
# run left finds it (launcher_leftover_kinds.sh). Nothing that the node itself uses is moved.

# The container's, or a reason why not. Under the lock: another run may want it.
sy_device_claim() { # <device>
    local why state
    if ! why=$(sy_device_check "$1"); then
        sy_log "$SY_LAUNCHER: $why"
        return 4
    fi
    state=$(sy_leftover_device_state "$1") || return
    SY_DEVICE=$1 SY_DEVICE_INDEX=${state%% *}
    sy_leftover_mark phys "$SY_LAUNCHER_NAME $1 $state$(sy_device_read_settings "$1")" || return
    sy_tag launcher_device "$1"
}

# Why it cannot be a container's, in one sentence that says what to do; false when there is one.
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

# PID … JOB of the run of this network namespace that has it.
sy_device_find_owner() { # <device>
    local mark
    while IFS= read -r mark; do
        [[ -n $mark && $(sy_leftover_network_state "$mark") == here ]] && sed -n '1s/^owner //p' "$mark" && return
    done <<<"$(grep -lsE "^phys [^ ]+ ${1//./\\.} " "$SY_LEFTOVER_DIR"/steelyard-*-*)"
    return 1
}

# All but lo.
sy_device_list_names() {
    local name list=''
    while IFS=': ' read -r _ name _; do
        [[ $name == lo ]] || list+=${list:+, }${name%%@*}
    done <<<"$(ip -oneline link show)"
    printf '%s' "${list:-none}"
}

# What the node would lose, the first of it: an address or a route other than those that IPv6 gives each
# device, devices on top of it, a queue that somebody made.
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

# What is set for it alone: a device that comes into a namespace has the settings of all there.
sy_device_read_settings() { # <device>
    local file value default
    for file in /proc/sys/net/ipv[46]/{conf,neigh}/"$1"/*; do
        value='' default=''
        { read -r value <"$file" && read -r default <"${file%/*/*}/default/${file##*/}"; } 2>/dev/null
        [[ ! $value =~ ^-?[0-9]+$ || $value == "$default" ]] || printf ' %s=%s' "${file#/proc/sys/net/}" "$value"
    done
}

# --- in its container ------------------------------------------------------------------------

# LXC moves it itself, and back, as the configuration says; the namespace has its name afterwards.
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
    local line deadline why='is not in its container'
    sy_set_time deadline "$((${SY_DEVICE_LINK_S:-15} * 1000000))"
    while line=$(ip -netns "$SY_LAUNCHER_NAME" -oneline link show | grep "^$SY_DEVICE_INDEX: "); do
        [[ $line != *LOWER_UP* ]] || return 0
        why='has no link: is it plugged in, and the other end up?'
        ! sy_is_past "$deadline" || break
        sy_pause 0.1
    done
    sy_log "$SY_LAUNCHER: device $SY_DEVICE of $SY_THIS_NODE $why"
    return 4
}

# At the run's end.
sy_device_check_return() {
    [[ -n ${SY_DEVICE:-} ]] || return 0
    [[ -e $SY_LEFTOVER_DIR/$SY_LAUNCHER_NAME ]] || ! sy_leftover_device_state "$SY_DEVICE" >/dev/null || return 0
    sy_log "$SY_LAUNCHER: device $SY_DEVICE has not come back to $SY_THIS_NODE as it was: steelyard-left list, ip link and ip netns there say what is"
}
