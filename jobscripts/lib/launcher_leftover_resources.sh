#!/bin/bash
# The kinds of resources in a mark (listed in launcher_leftovers.sh): validate, test and remove them.
# Part of steelyard.sh, and of steelyard-left.
#
# A mark is root's file, but its text is checked again here: only names and paths that a launcher can have
# made are accepted, and anything else in a mark is left alone. Removing may be repeated, and a resource
# that is gone is no error. A device of the node is not removed but returned, with its name, address and
# settings, and only if it is the same device by its index.

# Whether a line of a mark names a resource that a launcher can have made: no other device, route or
# folder is ever removed.
sy_leftover_is_valid() { # <word> <value>
    case $1 in
    link | accept) [[ $2 =~ ^sy[bv]?[0-9]+$ ]] ;;
    forwarding) [[ $2 =~ ^[A-Za-z0-9_][A-Za-z0-9_.@:-]*$ ]] ;;
    space | lxc) [[ $2 =~ ^steelyard-[0-9]+-[0-9]+$ ]] ;;
    route) [[ $2 =~ ^198\.1[89]\.[0-9]+\.[0-9]+/28\ via\ [0-9a-f.:]+\ dev\ [A-Za-z0-9_][A-Za-z0-9_.@:-]*$ ]] ;;
    cgroup) [[ $2 =~ ^/sys/fs/cgroup/(.*/)?steelyard-[0-9]+-[0-9]+$ && $2 != */../* ]] ;;
    folder) [[ $2 =~ ^/run/systemd/nspawn/propagate/steelyard-[0-9]+-[0-9]+$ ]] ;;
    container) [[ $2 =~ ^(docker|podman)\ steelyard-[0-9]+-[0-9]+$ ]] ;;
    phys) [[ $2 =~ ^steelyard-[0-9]+-[0-9]+\ [A-Za-z0-9_][A-Za-z0-9_.-]*\ [0-9]+\ (up|down),[0-9]+,[0-9a-f:]*(\ ipv[46]/(conf|neigh)/[A-Za-z0-9_][A-Za-z0-9_.-]*/[a-z0-9_]+=-?[0-9]+)*$ ]] ;;
    *) false ;;
    esac
}

# Whether the resource exists.
# shellcheck disable=SC2086 # a route, a device
sy_leftover_exists() { # <word> <value>
    local found
    case $1 in
    link) ip link show dev "$2" ;;
    route) found=$(ip route show $2) && [[ -n $found ]] ;;
    accept) iptables -w -C FORWARD -i "$2" -j ACCEPT || iptables -w -C FORWARD -o "$2" -j ACCEPT ;;
    # Not while another run uses it: that run switches it off.
    forwarding) read -r found <"/proc/sys/net/ipv4/conf/$2/forwarding" && [[ $found == 1 ]] &&
        (($(grep -lsx "forwarding $2" "$SY_LEFTOVER_DIR"/steelyard-*-* | wc -l) < 2)) ;;
    space) [[ -e /run/netns/$2 ]] ;;
    phys) sy_leftover_device_is_changed $2 ;;
    cgroup | folder) [[ -d $2 && ! -L $2 ]] ;;
    lxc) [[ -n $(sy_leftover_list_lxc_cgroups "$2") ]] ;;
    container)
        found=$(sy_leftover_list_containers "${2% *}" "${2#* }")
        [[ $? != 0 || -n $found ]] # an engine that does not answer may have the container
        ;;
    esac
} >/dev/null 2>&1

# Print the ids of a run's containers. Found by label: the name may be the beginning of another name.
sy_leftover_list_containers() { # <docker or podman> <steelyard-PID-START>
    local -r owner=${2#steelyard-}
    timeout 20 "$1" ps --all --quiet --filter="label=steelyard.owner=${owner/-/:}"
}

# Remove a run's containers. While the engine removes a container itself, because its client was killed,
# it refuses a second removal.
# shellcheck disable=SC2086 # containers
sy_leftover_remove_containers() { # <docker or podman> <steelyard-PID-START>
    local found try
    for ((try = 0; try < 30; try++)); do
        found=$(sy_leftover_list_containers "$1" "$2") || return
        [[ -n $found ]] || return 0
        timeout 20 "$1" rm --force $found
        read -r -t 0.1 <> <(:) || :
    done
    return 1
}

# Print lxc.monitor.NAME and lxc.payload.NAME: at the top, or with lxc.cgroup.relative below the job's.
sy_leftover_list_lxc_cgroups() { # <name>
    find /sys/fs/cgroup -depth -type d -name "lxc.*.$1"
}

# shellcheck disable=SC2086 # a route, a device
sy_leftover_remove_resource() { # <word> <value>
    local found
    case $1 in
    link) ip link delete dev "$2" ;;
    route) ip route delete $2 ;;
    accept)
        iptables -w -D FORWARD -i "$2" -j ACCEPT
        iptables -w -D FORWARD -o "$2" -j ACCEPT
        ;;
    forwarding) printf '0\n' >"/proc/sys/net/ipv4/conf/$2/forwarding" ;;
    space) ip netns delete "$2" ;;
    phys) sy_leftover_return_device $2 ;;
    cgroup) sy_leftover_remove_cgroup "$2" ;;
    lxc)
        while IFS= read -r found; do
            sy_leftover_remove_cgroup "$found"
        done < <(sy_leftover_list_lxc_cgroups "$2")
        ;;
    folder) rmdir -- "$2" ;;
    container) sy_leftover_remove_containers "${2% *}" "${2#* }" ;;
    esac
} >/dev/null 2>&1

# Remove a cgroup and those below it: systemd-nspawn makes some with v2. Dying processes delay the removal.
sy_leftover_remove_cgroup() { # <folder>
    local try
    for ((try = 0; try < 100; try++)); do
        find "$1" -depth -type d -exec rmdir -- {} + 2>/dev/null
        [[ -d $1 ]] || return 0
        read -r -t 0.05 <> <(:) || :
    done
    return 1
}

# --- a device that was moved -----------------------------------------------------------------

# Its line: SPACE DEVICE INDEX up|down,MTU,ADDRESS [SETTING=VALUE]…. The index finds the device in the
# namespace, also under another name. The settings (below /proc/sys/net) are lost when a device moves.

# Print the device's name in the namespace; nothing: it is not in it.
sy_leftover_device_name() { # <namespace> <index>
    local index name
    [[ -e /run/netns/$1 ]] || return 0
    while IFS=': ' read -r index name _; do
        [[ $index != "$2" ]] || printf '%s' "${name%%@*}"
    done <<<"$(ip -netns "$1" -oneline link show 2>/dev/null)"
}

# Print INDEX up|down,MTU,ADDRESS; false: this node does not have the device.
sy_leftover_device_state() { # <device>
    local line state=down mtu=''
    line=$(ip -oneline link show dev "$1" 2>/dev/null) || return
    [[ ! $line =~ \<([^>]*,)?UP[,\>] ]] || state=up
    [[ ! $line =~ \ mtu\ ([0-9]+) ]] || mtu=${BASH_REMATCH[1]}
    [[ $line =~ \ link/[a-z0-9]+\ ([0-9a-f:]*) ]]
    printf '%s %s,%s,%s' "${line%%:*}" "$state" "$mtu" "${BASH_REMATCH[1]}"
}

# Whether the device is in the namespace, or on the node with changed settings. A device that is nowhere
# was removed from the machine; a device with another index is a different one.
sy_leftover_device_is_changed() { # <namespace> <device> <index> <state> [<setting>=<value>]...
    local state setting value
    [[ -z $(sy_leftover_device_name "$1" "$3") ]] || return 0
    state=$(sy_leftover_device_state "$2") && [[ ${state%% *} == "$3" ]] || return 1
    [[ $state == "$3 $4" ]] || return 0
    for setting in "${@:5}"; do
        read -r value <"/proc/sys/net/${setting%%=*}" && [[ $value == "${setting#*=}" ]] || return 0
    done
    return 1
}

# Return the device to the node and restore its settings. It is set up last: IPv6 adds addresses then.
sy_leftover_return_device() { # <namespace> <device> <index> <state> [<setting>=<value>]...
    local setting value state mtu address
    local -r inside=$(sy_leftover_device_name "$1" "$3")
    [[ -z $inside ]] || ip -netns "$1" link set dev "$inside" netns "$$" name "$2" || return
    for setting in "${@:5}"; do
        read -r value <"/proc/sys/net/${setting%%=*}"
        [[ $value == "${setting#*=}" ]] || printf '%s\n' "${setting#*=}" >"/proc/sys/net/${setting%%=*}"
    done
    IFS=, read -r state mtu address <<<"$4"
    value=$(sy_leftover_device_state "$2")
    [[ $value == *",$address" ]] || ip link set dev "$2" address "$address"
    [[ $value == *",$mtu,"* ]] || ip link set dev "$2" mtu "$mtu"
    ip link set dev "$2" "$state"
}
