#!/bin/bash
# Verifies a network condition from inside containers before anything is measured: containers with a
# private network may bypass the node's queues and routes. Part of steelyard.sh; called by launcher.sh
# and launcher_peer_containers.sh.
#
#   SY_NETWORK_CONDITION  the nodes' condition; not set: none, or containers have the node's network
# shellcheck disable=SC2153 # SY_LAUNCHER and SY_LAUNCHED are two things

# Set rto_min, TCP's least retransmission time, on the container's routes: it is an attribute of routes,
# and a container has private ones.
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

# Tag whether the nodes' condition is in force for their containers. A condition whose to= lacks the
# containers' addresses is not. A delay is measured from inside, by round trips; the condition is
# `verified` only when it has no other keys.
sy_condition_verify() {
    local -r spec=${SY_NETWORK_CONDITION:-}
    local verified='' unverified='' no_effect='' key
    [[ -n $spec ]] || return 0
    if ((${#SY_PEER_NODES[@]} == 1)); then
        sy_tag launcher_condition 'none: what containers of one node send each other does not leave it'
        return 0
    fi
    SY_CONDITION_PORT=9
    [[ ! ,$spec, =~ ,port=([0-9]+), ]] || SY_CONDITION_PORT=${BASH_REMATCH[1]}
    for key in loss rate sites trace slot duplicate corrupt reorder ecn limit; do
        [[ ,$spec, != *",$key="* ]] || unverified+="${unverified:+, }$key="
    done
    sy_condition_check_addresses && { [[ -n $no_effect ]] || sy_condition_verify_delay; } || return
    if [[ -n $no_effect ]]; then
        sy_tag launcher_condition "none: $no_effect"
    elif [[ -n $unverified || -z $verified ]]; then
        unverified="${unverified:-this} is looked at on the nodes only"
        sy_tag launcher_condition "not verified: $unverified${verified:+; verified: $verified}"
    else
        sy_tag launcher_condition "verified: $verified"
    fi
}

# --- addresses -------------------------------------------------------------------------------

# Check that to= names the containers' addresses; sets `no_effect` where it names neither them nor the
# nodes.
sy_condition_check_addresses() {
    [[ ,$spec == *,to=* ]] || return 0
    # shellcheck disable=SC2046,SC2086 # addresses
    if sy_condition_has_addresses $(sy_condition_remote_addresses); then
        return 0
    elif sy_condition_has_addresses ${SY_PEER_ADDRESSES#* }; then
        sy_log "$SY_LAUNCHER: $spec holds for its nodes and not for its containers, whose addresses are of 198.18.0.0/15: name these with to=, too, or leave to= out"
        return 4
    fi
    no_effect='to= names neither the nodes nor their containers'
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
    local -a octets
    IFS=. read -r -a octets <<<"$1"
    printf '%d' $(((octets[0] << 24) + (octets[1] << 16) + (octets[2] << 8) + octets[3]))
}

# --- delay -----------------------------------------------------------------------------------

# Sets `verified` or `no_effect`.
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
        sy_log "$SY_LAUNCHER: $spec delays its nodes and not its containers (the least round trip takes $outside us between nodes, $inside us between containers, whose addresses are of 198.18.0.0/15): name these with to=, too, or leave to= out"
        return 4
    else
        no_effect='it delays neither the nodes among each other nor the containers'
    fi
}

# Print the least round trip that shows the delay, in µs: 90 % of the delay, half of it with jitter;
# nothing without a delay.
sy_condition_min_delay_us() { # <specification>
    local -A unit=([us]=1 [ms]=1000 [s]=1000000)
    local delay_us fraction
    [[ ,$1 =~ ,delay=([0-9]+)(\.([0-9]{1,6})[0-9]*)?(us|ms|s)(~?) ]] || return 0
    delay_us=$((10#${BASH_REMATCH[1]} * unit[${BASH_REMATCH[4]}]))
    fraction=${BASH_REMATCH[3]:-0}
    delay_us=$((delay_us + 10#$fraction * unit[${BASH_REMATCH[4]}] / 10 ** ${#fraction}))
    ((delay_us > 0)) || return 0
    if [[ -n ${BASH_REMATCH[5]} ]]; then
        printf '%d' "$((delay_us / 2))"
    else
        printf '%d' "$((delay_us * 9 / 10))"
    fi
}

# Print the addresses of the containers on other nodes.
sy_condition_remote_addresses() {
    local node address list=''
    while read -r _ node address _; do
        [[ $node == "$SY_THIS_NODE" ]] || list+=${list:+ }${address%/*}
    done <"$SY_PEERS/list"
    printf '%s' "$list"
}

# Print the least of five round trips to each address, of all of them, in microseconds: a connection to
# a closed port is refused after one round trip. No process is started in the measured time.
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
