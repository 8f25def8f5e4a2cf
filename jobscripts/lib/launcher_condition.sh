#!/bin/bash
# A network condition, and containers that have a network of their own: the node's queues and routes
# need not be theirs. Looked at from inside before anything is measured. Part of steelyard.sh; called
# by launcher.sh and launcher_peers.sh.
#
#   SY_NETWORK_CONDITION  what is to hold on the nodes; not set: nothing, or they have the node's network
# shellcheck disable=SC2153 # SY_LAUNCHER and SY_LAUNCHED are two things

# The least time before TCP sends again is a property of routes, and a container has its own.
sy_condition_set_rto_min() {
    local value pid route
    local -a words
    [[ ,${SY_NETWORK_CONDITION:-}, =~ ,rto_min=([0-9.]+(us|ms|s)), ]] || return 0
    value=${BASH_REMATCH[1]}
    if ((EUID != 0)); then
        sy_log "$SY_LAUNCHER: rto_min=$value would hold on $SY_THIS_NODE and not in its container, whose routes only root can change: leave network= out, or ask root to submit"
        return 4
    fi
    pid=$(sy_kind pid) && [[ -n $pid ]] || return 4
    while read -r route; do
        read -r -a words <<<"$route"
        nsenter "--net=/proc/$pid/ns/net" ip route change "${words[@]}" rto_min "$value"
    done < <(nsenter "--net=/proc/$pid/ns/net" ip route show)
    route=$(nsenter "--net=/proc/$pid/ns/net" ip route show | grep -v rto_min)
    if [[ -n $route ]]; then
        sy_log "$SY_LAUNCHER: rto_min=$value is not in force in its container on $SY_THIS_NODE: ${route//$'\n'/; }"
        return 4
    fi
    sy_tag launcher_rto_min "$value"
}

# What is asked for holds for the nodes: for their containers, too? A condition with to= that leaves
# out the containers' own addresses would not, and their runs would pass for shaped ones. A delay is
# looked at from inside, by round trips; only when nothing else is asked for the condition is `verified`.
sy_condition_verify() {
    local -r spec=${SY_NETWORK_CONDITION:-}
    local verified='' open='' none='' key
    [[ -n $spec ]] || return 0
    if ((${#SY_PEER_NODES[@]} == 1)); then
        sy_tag launcher_condition 'none: what containers of one node send each other does not leave it'
        return 0
    fi
    SY_CONDITION_PORT=9
    [[ ! ,$spec, =~ ,port=([0-9]+), ]] || SY_CONDITION_PORT=${BASH_REMATCH[1]}
    for key in loss rate sites trace slot duplicate corrupt reorder ecn limit; do
        [[ ,$spec, != *",$key="* ]] || open+="${open:+, }$key="
    done
    sy_condition_check_addresses && { [[ -n $none ]] || sy_condition_verify_delay; } || return
    if [[ -n $none ]]; then
        sy_tag launcher_condition "none: $none"
    elif [[ -n $open || -z $verified ]]; then
        open="${open:-this} is looked at on the nodes only"
        sy_tag launcher_condition "not verified: $open${verified:+; verified: $verified}"
    else
        sy_tag launcher_condition "verified: $verified"
    fi
}

# --- addresses -------------------------------------------------------------------------------

# Whether to= names where the containers are; sets `none` where it names the nodes neither.
sy_condition_check_addresses() {
    [[ ,$spec == *,to=* ]] || return 0
    # shellcheck disable=SC2046,SC2086 # words
    if sy_condition_has_addresses $(sy_condition_remote_addresses); then
        return 0
    elif sy_condition_has_addresses ${SY_PEER_ADDRESSES#* }; then
        sy_log "$SY_LAUNCHER: $spec holds for its nodes and not for its containers, whose addresses are of 198.18.0.0/15: name these with to=, too, leave to= out, or take scope=node"
        return 4
    fi
    none='to= names neither the nodes nor their containers'
}

# Whether to= of `spec` names all of these.
sy_condition_has_addresses() { # <address>...
    local address network found
    for address; do
        found=''
        while read -r network; do
            ! sy_condition_is_in_network "$address" "$network" || found=yes
        done < <(grep -oP '(?<=,to=)[^,]+' <<<",$spec")
        [[ -n $found ]] || return
    done
}

sy_condition_is_in_network() { # <IPv4 address> <network, or address>
    local -r bits=$([[ $2 == */* ]] && printf '%s' "${2#*/}" || printf 32)
    local -r dots='^[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+$'
    [[ $1 =~ $dots && ${2%/*} =~ $dots ]] || return
    (($(sy_condition_address_number "$1") >> (32 - bits) == $(sy_condition_address_number "${2%/*}") >> (32 - bits)))
}

sy_condition_address_number() { # <IPv4 address>
    local -a part
    IFS=. read -r -a part <<<"$1"
    printf '%d' $(((part[0] << 24) + (part[1] << 16) + (part[2] << 8) + part[3]))
}

# --- delay -----------------------------------------------------------------------------------

# Sets `verified` or `none`.
sy_condition_verify_delay() {
    local answer inside outside least
    least=$(sy_condition_min_delay_us "$spec")
    [[ -n $least ]] || return 0
    sy_launcher_send "trip $SY_CONDITION_PORT $(sy_condition_remote_addresses)" && sy_launcher_read_answer trip || return
    inside=$answer
    outside=$(sy_condition_measure_round_trip "$SY_CONDITION_PORT ${SY_PEER_ADDRESSES#* }")
    if ((inside >= least)); then
        verified="a round trip between containers of two nodes takes $((inside / 1000)).$(printf '%03d' $((inside % 1000))) ms"
    elif ((outside >= least)); then
        sy_log "$SY_LAUNCHER: $spec delays its nodes and not its containers (the least round trip takes $outside us between nodes, $inside us between containers, whose addresses are of 198.18.0.0/15): name these with to=, too, leave to= out, or take scope=node"
        return 4
    else
        none='it delays neither the nodes among each other nor the containers'
    fi
}

# Nine tenths of the delay, half of it where there is jitter; nothing when there is no delay.
sy_condition_min_delay_us() { # <specification>
    local -A unit=([us]=1 [ms]=1000 [s]=1000000)
    local whole part
    [[ ,$1 =~ ,delay=([0-9]+)(\.([0-9]{1,6})[0-9]*)?(us|ms|s)(~?) ]] || return 0
    whole=$((10#${BASH_REMATCH[1]} * unit[${BASH_REMATCH[4]}]))
    part=${BASH_REMATCH[3]:-0}
    whole=$((whole + 10#$part * unit[${BASH_REMATCH[4]}] / 10 ** ${#part}))
    ((whole > 0)) || return 0
    if [[ -n ${BASH_REMATCH[5]} ]]; then
        printf '%d' "$((whole / 2))"
    else
        printf '%d' "$((whole * 9 / 10))"
    fi
}

# Addresses of the containers on other nodes.
sy_condition_remote_addresses() {
    local node address list=''
    while read -r _ node address _; do
        [[ $node == "$SY_THIS_NODE" ]] || list+=${list:+ }${address%/*}
    done <"$SY_PEERS/list"
    printf '%s' "$list"
}

# The least of five round trips to each address, of all of them, in microseconds: a connection that
# nobody waits for is refused after one. Nobody is started in the time.
sy_condition_measure_round_trip() { # "<port> <address>..."
    # shellcheck disable=SC2016,SC2086
    timeout 100 bash -c 'least=$((1 << 40)) port=$1
        for address in "${@:2}"; do
            for i in 1 2 3 4 5; do
                begin=${EPOCHREALTIME//[^0-9]/}
                { : >"/dev/tcp/$address/$port"; } 2>/dev/null
                took=$((${EPOCHREALTIME//[^0-9]/} - begin))
                ((took >= least)) || least=$took
            done
        done
        echo "$least"' sy_condition_measure_round_trip $1
}
