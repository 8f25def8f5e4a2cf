#!/bin/bash
# A network between the containers of one program (ranks=across): a bridge with a veth pair for each
# container, routed to the other nodes; macvlan devices; or a device of the node for each node's one
# container. It needs root, except for docker's and podman's networks. Part of steelyard.sh; called by
# launcher_peer_containers.sh.
#
# Addresses are in 198.18.0.0/15, which RFC 2544 reserves for network benchmarks: a block of 16 for each
# node, from SY_NETWORK_BLOCK on, which is a hash of the attempt: 1 … 8 are its containers, 14 is the
# node. Resources are marked before they are made (launcher_leftovers.sh); existing ones are not marked.

# Print which program makes the network: `host` (none), `engine` (docker, podman), or `ours`.
sy_network_provider() {
    case $SY_LAUNCHER_NETWORK:$SY_LAUNCHER_KIND${SY_PEER_ADDRESSES:+:nodes} in
    host:*) printf 'host' ;;
    macvlan:docker* | macvlan:podman* | bridge:docker | bridge:podman) printf 'engine' ;;
    *) printf 'ours' ;;
    esac
}

sy_network_choose_block() { # <nodes>
    local sum
    sum=$(printf '%s %s' "$SY_ATTEMPT_DIR" "$SY_CLIENT" | cksum)
    printf '%d' "$((${sum%% *} % (8191 - $1) + 1))"
}

sy_network_address() { # <node's number> <1 to 14; 0: the block>
    local -r n=$(((SY_NETWORK_BLOCK + $1) * 16 + $2))
    printf '198.%d.%d.%d' "$((18 + n / 65536))" "$((n / 256 % 256))" "$((n % 256))"
}

# --- the node --------------------------------------------------------------------------------

sy_network_set_up_node() {
    local -r bridge=syb$((SY_NETWORK_BLOCK + SY_PEER_NODE))
    [[ $(sy_network_provider) == ours ]] || return 0
    if ((EUID != 0)); then
        sy_log "$SY_LAUNCHER: only root can give its containers a network between them: leave network= out"
        return 4
    fi
    [[ $SY_LAUNCHER_NETWORK == bridge ]] || return 0
    sy_leftover_run_locked sy_network_make_bridge "$bridge" &&
        ip address add "$(sy_network_address "$SY_PEER_NODE" 14)/28" dev "$bridge" &&
        ip link set "$bridge" up && sy_network_accept_forwarding "$bridge" && sy_network_add_routes "$bridge" && return
    sy_log "$SY_LAUNCHER: no bridge for its containers could be made on $SY_THIS_NODE (see above)"
    return 4
}

sy_network_make_bridge() { # <bridge>
    local -r block=$(sy_network_address "$SY_PEER_NODE" 0)
    if ip link show dev "$1" >/dev/null 2>&1 || [[ -n $(ip route show root "$block/28") ]]; then
        sy_log "$SY_LAUNCHER: $block/28 is in use on $SY_THIS_NODE: submit the run again, it gets other addresses"
        return 4
    fi
    sy_leftover_mark link "$1" && ip link add "$1" type bridge
}

# Add routes to the containers of the job's other nodes, without address translation.
sy_network_add_routes() { # <bridge>
    local address route device i=-1
    for address in ${SY_PEER_ADDRESSES:-}; do
        i=$((i + 1))
        route=$(ip -oneline route get "$address") || return
        # Its own address, or that of another node on this machine, as in tests.
        [[ $route != local* ]] || continue
        device=${route#* dev } device=${device%% *}
        sy_leftover_run_locked sy_network_enable_forwarding "$device" && sy_leftover_run_locked sy_network_enable_forwarding "$1" || return
        sy_leftover_run_locked sy_network_add_route "$(sy_network_address "$i" 0)/28 via $address dev $device" && continue
        sy_log "node $address is no neighbour of $SY_THIS_NODE: its containers cannot be reached by a bridge"
        return 1
    done
}

# shellcheck disable=SC2086 # a route
sy_network_add_route() { # <NETWORK via ADDRESS dev DEVICE>
    [[ -z $(ip route show ${1%% *}) ]] && sy_leftover_mark route "$1" && ip route add $1
}

sy_network_enable_forwarding() { # <device>
    local -r file=/proc/sys/net/ipv4/conf/$1/forwarding
    local value
    read -r value <"$file" || return
    # Marked also when another run has switched it on: that run will switch it off.
    ((value == 0)) || grep -qsx "forwarding $1" "$SY_LEFTOVER_DIR"/steelyard-*-* || return 0
    sy_leftover_mark forwarding "$1" && printf '1\n' >"$file"
}

# Let a firewall that drops forwarded packets (docker's) accept the bridge's: it may filter even packets
# between two ports of a bridge.
sy_network_accept_forwarding() { # <bridge>
    local rules
    rules=$(iptables -w -S FORWARD 2>/dev/null) && [[ ${rules%%$'\n'*} == *DROP ]] || return 0
    sy_leftover_mark accept "$1" &&
        iptables -w -I FORWARD -i "$1" -j ACCEPT && iptables -w -I FORWARD -o "$1" -j ACCEPT
}

# --- a container -----------------------------------------------------------------------------

# Make a network namespace in which the container starts. Docker makes its own, and gets the device later.
sy_network_make_device() {
    [[ -n ${SY_LAUNCHER_ACROSS:-} && $(sy_network_provider) == ours && $SY_LAUNCHER_KIND != docker ]] || return 0
    SY_NETWORK_NS=$SY_LAUNCHER_NAME
    sy_leftover_mark space "$SY_NETWORK_NS" && ip netns add "$SY_NETWORK_NS" && ip -netns "$SY_NETWORK_NS" link set lo up &&
        sy_network_connect "$SY_NETWORK_NS" "/run/netns/$SY_NETWORK_NS" && return
    (($? == 4)) || # the reason is logged
        sy_log "$SY_LAUNCHER: its container could not get a device of the network on $SY_THIS_NODE (see above)"
    return 4
}

sy_network_connect() { # <namespace's name or a process in it> <namespace's file>
    local -r outside=syv$$ bridge=syb$((SY_NETWORK_BLOCK + SY_PEER_NODE))
    local -r address=$(sy_network_address "$SY_PEER_NODE" "$((SY_PEER + 1))")
    local device=eth0 parent
    case $SY_LAUNCHER_NETWORK in
    phys)
        # It keeps its name: so the kernel can return it when the namespace is destroyed.
        device=$SY_LAUNCHER_DEVICE
        sy_leftover_run_locked sy_device_claim "$device" && sy_device_move "$1" || return
        ;;
    macvlan)
        parent=$(sy_network_find_parent) &&
            ip link add link "$parent" name eth0 netns "$1" type macvlan mode bridge || return
        ;;
    *)
        sy_leftover_mark port "$bridge" && sy_leftover_mark link "$outside" &&
            ip link add "$outside" type veth peer name eth0 netns "$1" &&
            ip link set "$outside" master "$bridge" up || return
        ;;
    esac
    nsenter "--net=$2" ip address add "$address/$(sy_network_prefix_length)" dev "$device" &&
        nsenter "--net=$2" ip link set "$device" up || return
    case $SY_LAUNCHER_NETWORK in
    phys) sy_device_wait_for_link ;;
    macvlan) ;;
    *) nsenter "--net=$2" ip route add default via "$(sy_network_address "$SY_PEER_NODE" 14)" ;;
    esac
}

# Connect a container of docker. A device of the node is moved into a namespace that outlives the
# container.
sy_network_connect_docker() { # <process in the container>
    if [[ $SY_LAUNCHER_NETWORK == phys ]]; then
        sy_leftover_mark space "$SY_LAUNCHER_NAME" && ip netns attach "$SY_LAUNCHER_NAME" "$1" &&
            sy_network_connect "$SY_LAUNCHER_NAME" "/run/netns/$SY_LAUNCHER_NAME"
    else
        sy_network_connect "$1" "/proc/$1/ns/net"
    fi
}

# Print the prefix length: bridges are routed, with other devices all nodes are in one network.
sy_network_prefix_length() {
    if [[ $SY_LAUNCHER_NETWORK == bridge ]]; then
        printf '28'
    else
        printf '15'
    fi
}

# Print the device that macvlan devices share: the one by which the job's nodes reach each other; with
# one node that of the default route, or of the node's address where it has no default route.
sy_network_find_parent() {
    local -a addresses
    local line='' address
    read -r -a addresses <<<"${SY_PEER_ADDRESSES:-}"
    if ((${#addresses[@]})); then
        address=${addresses[SY_PEER_NODE]}
    else
        line=$(ip -oneline route show default) line=${line#* dev }
        [[ -n $line ]] || address=$(sy_node_address "$SY_THIS_NODE") || return
    fi
    if [[ -n ${address:-} && $address != 127.* ]]; then
        line=$(ip -oneline address show to "$address") line=${line#*: }
    fi
    line=${line%% *}
    [[ -n $line ]] && printf '%s' "${line%%@*}" && return
    sy_log "no device of $SY_THIS_NODE can carry macvlan devices: it has no default route, and none has the address ${address:-of another node}"
    return 4
}

# Connect the started container where that is still to do, and print its ADDRESS/PREFIX.
sy_network_attach() {
    local pid address=127.0.0.1 prefix=8
    local -a addresses
    case $(sy_network_provider) in
    engine)
        "$SY_LAUNCHER_KIND" inspect --format='{{range .NetworkSettings.Networks}}{{.IPAddress}}/{{.IPPrefixLen}}{{end}}' "$SY_LAUNCHER_NAME"
        return
        ;;
    ours)
        address=$(sy_network_address "$SY_PEER_NODE" "$((SY_PEER + 1))") prefix=$(sy_network_prefix_length)
        if [[ $SY_LAUNCHER_KIND == docker ]]; then
            pid=$(sy_kind pid) && sy_network_connect_docker "$pid" || return
        fi
        ;;
    host)
        read -r -a addresses <<<"${SY_PEER_ADDRESSES:-}"
        ((${#addresses[@]} == 0)) || {
            address=${addresses[SY_PEER_NODE]} prefix=$(sy_prefix_length "$address")
        }
        ;;
    esac
    printf '%s/%s' "$address" "$prefix"
}

# --- one container alone ----------------------------------------------------------------------

# Make a network namespace with one veth pair to this node only; forwarding is left to the administrator.
sy_network_make_veth() {
    local n=$((($$ % 16384) * 4)) ns=$SY_LAUNCHER_NAME base
    base=10.213.$((n / 256)).
    SY_LAUNCHER_VETH=sy$$
    sy_leftover_mark space "$ns" && sy_leftover_mark link "$SY_LAUNCHER_VETH" && ip netns add "$ns" &&
        ip link add "$SY_LAUNCHER_VETH" type veth peer name eth0 netns "$ns" &&
        ip address add "$base$((n % 256 + 1))/30" dev "$SY_LAUNCHER_VETH" &&
        ip link set "$SY_LAUNCHER_VETH" up &&
        ip -netns "$ns" link set lo up &&
        ip -netns "$ns" address add "$base$((n % 256 + 2))/30" dev eth0 &&
        ip -netns "$ns" link set eth0 up &&
        ip -netns "$ns" route add default via "$base$((n % 256 + 1))" && return
    sy_log "$SY_LAUNCHER: no veth pair could be made on $SY_THIS_NODE (see above)"
    return 4
}
