#!/bin/bash
# A network condition, and containers that have a network of their own: the node's queues and routes
# need not be theirs. Looked at from inside before anything is measured. Part of steelyard.sh; called
# by launcher.sh and launcher_places.sh.
#
#   SY_NETWORK_CONDITION  what is to hold on the nodes; not set: nothing, or they have the node's network
# shellcheck disable=SC2153 # SY_LAUNCHER and SY_LAUNCHED are two things

# The least time before TCP sends again is a property of routes, and a container has its own.
sy_condition_routes() {
    local value pid route
    local -a words
    [[ ,${SY_NETWORK_CONDITION:-}, =~ ,rto_min=([0-9.]+(us|ms|s)), ]] || return 0
    value=${BASH_REMATCH[1]}
    if ((EUID != 0)); then
        sy_say "$SY_LAUNCHER: rto_min=$value would hold on $SY_THIS_NODE and not in its container, whose routes only root can change: leave network= out, or ask root to submit"
        return 4
    fi
    pid=$(sy_launcher_pid) && [[ -n $pid ]] || return 4
    while read -r route; do
        read -r -a words <<<"$route"
        nsenter "--net=/proc/$pid/ns/net" ip route change "${words[@]}" rto_min "$value"
    done < <(nsenter "--net=/proc/$pid/ns/net" ip route show)
    route=$(nsenter "--net=/proc/$pid/ns/net" ip route show | grep -v rto_min)
    if [[ -n $route ]]; then
        sy_say "$SY_LAUNCHER: rto_min=$value is not in force in its container on $SY_THIS_NODE: ${route//$'\n'/; }"
        return 4
    fi
    sy_tag launcher_rto_min "$value"
}

# What is asked for holds for the nodes: for their containers, too? A condition with to= that leaves
# out the containers' own addresses would not, and their runs would pass for delayed ones. Each part
# is looked at from inside; only when all of them hold the condition is `verified`.
sy_condition_look() {
    local -r spec=${SY_NETWORK_CONDITION:-}
    local verified='' open='' none=''
    [[ -n $spec ]] || return 0
    if ((${#SY_PLACE_NODES[@]} == 1)); then
        sy_tag launcher_condition 'none: what containers of one node send each other does not leave it'
        return 0
    fi
    SY_CONDITION_PORT=9
    [[ ! ,$spec, =~ ,port=([0-9]+), ]] || SY_CONDITION_PORT=${BASH_REMATCH[1]}
    sy_condition_parts && sy_condition_delay && { [[ -n $none ]] || sy_condition_counted; } || return
    if [[ -n $none ]]; then
        sy_tag launcher_condition "none: $none"
    elif [[ -n $open || -z $verified ]]; then
        open=${open:-only delay, loss and rate can be looked at}
        sy_tag launcher_condition "not verified: $open${verified:+; verified: $verified}"
    else
        sy_tag launcher_condition "verified: $verified"
    fi
}

# --- delay -----------------------------------------------------------------------------------

# Sets `verified` or `none`.
sy_condition_delay() {
    local answer inside outside least
    least=$(sy_condition_least_us "$spec")
    [[ -n $least ]] || return 0
    sy_launcher_tell "trip $SY_CONDITION_PORT $(sy_condition_others)" && sy_launcher_answer trip || return
    inside=$answer
    outside=$(sy_condition_trip "$SY_CONDITION_PORT ${SY_PLACE_ADDRESSES#* }")
    if ((inside >= least)); then
        verified="a round trip between containers of two nodes takes $((inside / 1000)).$(printf '%03d' $((inside % 1000))) ms"
    elif ((outside >= least)); then
        sy_say "$SY_LAUNCHER: $spec delays its nodes and not its containers (the least round trip takes $outside us between nodes, $inside us between containers, whose addresses are of 198.18.0.0/15): name these with to=, too, leave to= out, or take scope=node"
        return 4
    else
        none='it delays neither the nodes among each other nor the containers'
    fi
}

# Nine tenths of the delay, half of it where there is jitter; nothing when there is no delay.
sy_condition_least_us() { # <specification>
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

# Addresses of the places on other nodes.
sy_condition_others() {
    local node address list=''
    while read -r _ node address _; do
        [[ $node == "$SY_THIS_NODE" ]] || list+=${list:+ }${address%/*}
    done <"$SY_PLACES/list"
    printf '%s' "$list"
}

# The least of five round trips to each address, of all of them, in microseconds: a connection that
# nobody waits for is refused after one. Nobody is started in the time.
sy_condition_trip() { # "<port> <address>..."
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
        echo "$least"' sy_condition_trip $1
}

# --- what a queue counts ---------------------------------------------------------------------

# Parts that nothing here looks at; sets `open`.
sy_condition_parts() {
    local key
    for key in sites trace slot duplicate corrupt reorder ecn; do
        [[ ,$spec, != *",$key="* ]] || sy_condition_open "$key= is not looked at"
    done
    [[ ! ,$spec =~ ,loss=[gs] ]] || sy_condition_open 'of loss in bursts a count says little'
    [[ ! ,$spec =~ ,rate=[^,]*: ]] || sy_condition_open 'a rate that counts more than the packets is not looked at'
    [[ ,$spec, != *,direction=* || ! ,$spec, =~ ,(loss|rate)= ]] ||
        sy_condition_open 'of loss and rate only what leaves the first node is looked at'
}

sy_condition_open() { # <why>
    open+="${open:+; }$1"
}

# Loss and rate, by datagrams from the first container.
sy_condition_counted() {
    local code=0 p rate
    p=$(sy_condition_loss_of "$spec") rate=$(sy_condition_rate_of "$spec")
    # Datagrams of ours would change which packets of the run are lost.
    [[ -z $p || ,$spec != *,seed=* ]] || p='' open+="${open:+; }with seed= loss is not counted"
    [[ -n $p$rate && ,$spec, != *,direction=ingress,* ]] || return 0
    if ! sy_counts_open "${SY_PLACE_ADDRESSES##* }"; then
        sy_say "$SY_LAUNCHER: $spec is not in force on $SY_THIS_NODE: tc qdisc show there has no queue of Steelyard's"
        return 4
    fi
    [[ -z $p ]] || sy_condition_loss "$p"
    code=$?
    [[ $code != 0 || -n $none || -z $rate ]] || sy_condition_rate "$rate" || code=$?
    sy_counts_close
    return "$code"
}

# The probability in 1e-8; nothing when there is none.
sy_condition_loss_of() { # <specification>
    local part
    [[ ,$1, =~ ,loss=([0-9]+)(\.([0-9]{1,6}))?%, ]] || return 0
    part=${BASH_REMATCH[3]}000000
    part=$((10#${BASH_REMATCH[1]} * 1000000 + 10#${part:0:6}))
    ((part == 0)) || printf '%d' "$part"
}

sy_condition_rate_of() { # <specification>; bit/s
    local -A unit=([bit]=1 [kbit]=1000 [mbit]=1000000 [gbit]=1000000000)
    local part
    [[ ,$1, =~ ,rate=([0-9]+)(\.([0-9]{1,9}))?([kmg]?bit), ]] || return 0
    part=${BASH_REMATCH[3]:-0}
    printf '%d' "$((10#${BASH_REMATCH[1]} * unit[${BASH_REMATCH[4]}] + 10#$part * unit[${BASH_REMATCH[4]}] / 10 ** ${#part}))"
}
