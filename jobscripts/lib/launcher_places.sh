#!/bin/bash
# One MPI program in several containers (ranks=across): SY_LAUNCHER_PLACES of them on each node of the
# job. Part of steelyard.sh; called by launcher.sh, and by mpi.sh inside.
#
# Each container is a place. Place 0 is the client's own, in which sy_client and mpirun run. On every
# node a keeper (SY_ROLE=keeper) makes the network and starts the other places (SY_ROLE=place), whose
# containers wait at a door (launcher_other_nodes.sh) for what mpirun starts there. All is ready
# before the measured time, and nobody polls in it. A place's processors are its share of the node's.
#
# What they tell each other: ATTEMPT/keeper.CLIENT.NODE and ATTEMPT/place.CLIENT.NODE.PLACE, made
# beforehand; a line of words each. SY_PLACES, a folder on each node's disk, has the doors, and on
# the first node `list`: NAME NODE ADDRESS/PREFIX DOOR of all places; a name is what mpirun is told.
# When the client is gone, its end of the FIFO `life` is closed, and all of it ends.
# shellcheck disable=SC2153 # SY_LAUNCHER and SY_LAUNCHED are two things

# --- outside: the client ---------------------------------------------------------------------

# Keepers on all nodes; returns when their networks are there.
sy_places_open() {
    local i k
    SY_PLACE=0 SY_PLACE_NODE=0
    [[ -n ${SY_LAUNCHER_PLACES:-} ]] || return 0
    SY_PLACE_NODES=("$SY_THIS_NODE")
    ((SY_CLIENTS > 1)) || sy_lines SY_PLACE_NODES sy_nodes
    sy_places_folder && mkfifo -m 600 "$SY_PLACES/life" || return
    SY_PLACE_ADDRESSES=$(sy_places_addresses) || return
    SY_NETWORK_BLOCK=$(sy_network_block "${#SY_PLACE_NODES[@]}")
    export SY_PLACE_ADDRESSES SY_NETWORK_BLOCK
    # Its only writer is this shell: with it everything ends.
    exec {SY_PLACES_LIFE}<>"$SY_PLACES/life"
    for i in "${!SY_PLACE_NODES[@]}"; do
        : >"$SY_ATTEMPT_DIR/keeper.$SY_CLIENT.$i" && : >"$SY_ATTEMPT_DIR/keeper.$SY_CLIENT.$i.stop" || return
        for ((k = 0; k < SY_LAUNCHER_PLACES; k++)); do
            : >"$SY_ATTEMPT_DIR/place.$SY_CLIENT.$i.$k" || return
        done
        sy_places_keeper "$i" &
        SY_KEEPERS+=($!)
    done
    for i in "${!SY_PLACE_NODES[@]}"; do
        sy_places_wait "keeper.$SY_CLIENT.$i" open "${SY_PLACE_NODES[i]}" || return
    done
}

sy_places_folder() {
    SY_PLACES=$(sy_left_folder "${SY_SCRATCH%/*}" "steelyard.$SY_RUN_ID.$SY_CLIENT.places") &&
        export SY_PLACES
}

# Of the nodes, in their order; of one node alone nobody asks.
sy_places_addresses() {
    local node list='' address
    ((${#SY_PLACE_NODES[@]} > 1)) || return 0
    for node in "${SY_PLACE_NODES[@]}"; do
        address=$(sy_node_address "$node") || return
        list+=${list:+ }$address
    done
    printf '%s' "$list"
}

# Until the client closes the other end, or is gone.
sy_places_keeper() { # <node's number>
    local life pid deadline
    local -r script=${SY_LAUNCHER_SCRIPT:-$SY_STUDY_DIR/runs/$SY_RUN_ID/run.sh}
    trap '' INT TERM
    trap - EXIT
    exec {SY_PLACES_LIFE}>&-
    (
        trap - INT TERM
        if (($1 == 0)); then
            SY_ROLE=keeper SY_PLACE_NODE=0 exec bash "$script" </dev/null
        fi
        SY_ROLE=keeper SY_PLACE_NODE=$1 sy_scheduler on_node "${SY_PLACE_NODES[$1]}" bash "$script" </dev/null
    ) &
    pid=$!
    exec {life}<"$SY_PLACES/life"
    read -r _ <&"$life"
    # What starts programs on another node answers a signal by killing them: asked by a file first.
    if (($1 > 0)); then
        printf 'stop\n' >>"$SY_ATTEMPT_DIR/keeper.$SY_CLIENT.$1.stop"
        sy_moment deadline "$((${SY_GRACE_S:-10} * 2000000))"
        while kill -0 "$pid" 2>/dev/null && ! sy_is_past "$deadline"; do
            sy_pause 0.05
        done
    fi
    kill -s TERM "$pid" 2>/dev/null
    wait "$pid"
}

# In what the client starts: only it holds the other end of `life`.
sy_places_let_go() {
    [[ -z ${SY_PLACES_LIFE:-} ]] || exec {SY_PLACES_LIFE}>&-
}

# Sets `answer` of the caller: what it has said after the word.
sy_places_wait() { # <file> <word> <where>
    local word deadline
    sy_moment deadline "$((${SY_BARRIER_S:-120} * 1000000))"
    while true; do
        read -r word answer <"$SY_ATTEMPT_DIR/$1" || :
        [[ $word != "$2" ]] || return 0
        if [[ $word == failed || -n $SY_SIGNAL ]] || sy_is_past "$deadline"; then
            [[ $word == failed ]] || sy_say "$SY_LAUNCHER: a container on $3 did not start${SY_SIGNAL:+ before SIG$SY_SIGNAL came}"
            return 1
        fi
        sy_pause 0.02
    done
}

# When the client's own container is there: wait for the others, and write the list.
sy_places_list() { # <this container's processors>
    local i k answer name cpus address door node=0
    local -a processors=("$1")
    [[ -n ${SY_LAUNCHER_PLACES:-} ]] || return 0
    address=$(sy_network_attach) || return
    printf 'localhost %s %s -\n' "$SY_THIS_NODE" "$address" >"$SY_PLACES/list"
    for i in "${!SY_PLACE_NODES[@]}"; do
        for ((k = 0; k < SY_LAUNCHER_PLACES; k++)); do
            ((i + k > 0)) || continue
            sy_places_wait "place.$SY_CLIENT.$i.$k" ready "${SY_PLACE_NODES[i]}" || return
            read -r cpus address door <<<"$answer"
            node=$((node + 1))
            # No name server is asked for an address. Those of one network namespace are told
            # apart by one that nobody has (class E); nothing is ever sent there.
            name=${address%/*}
            [[ $SY_LAUNCHER_NETWORK != host ]] || name=240.0.$((node / 250)).$((node % 250 + 1))
            printf '%s %s %s %s\n' "$name" "${SY_PLACE_NODES[i]}" "$address" "$door" >>"$SY_PLACES/list"
            processors+=("$cpus")
        done
    done
    sy_tag launcher_cpus "$(IFS=';' && printf '%s' "${processors[*]}")"
    [[ $SY_LAUNCHER_NETWORK == host ]] || sy_places_meet
}

# Before anything is measured: place 0 reaches all others.
sy_places_meet() {
    local name node door address answer list=''
    while read -r name node address door; do
        list+=${list:+ }${address%/*}
    done <"$SY_PLACES/list"
    sy_tag launcher_addresses "$list"
    if sy_launcher_tell "reach $list" && sy_launcher_answer reached && [[ $answer == - ]]; then
        sy_condition_look
        return
    fi
    if [[ ${answer:-} == without-timeout ]]; then
        sy_say "$SY_LAUNCHER: its image lacks the program timeout (Debian: coreutils), which looks whether its containers reach each other"
        return 1
    fi
    sy_say "$SY_LAUNCHER: its containers do not reach each other by network=$SY_LAUNCHER_NETWORK (no answer from ${answer:-any}): a firewall, or what the nodes' network lets pass"
    return 1
}

sy_places_close() {
    [[ -n ${SY_PLACES_LIFE:-} ]] || return 0
    exec {SY_PLACES_LIFE}>&-
    wait "${SY_KEEPERS[@]}" 2>/dev/null
    sy_places_remove_folder
}

# Only ever what sy_places_folder made.
sy_places_remove_folder() {
    [[ ${SY_PLACES:-} != */steelyard."$SY_RUN_ID"."$SY_CLIENT".places.* ]] || sy_left_remove_folder "$SY_PLACES"
}

# --- outside: a node's keeper ----------------------------------------------------------------

sy_keeper_main() {
    local k word=''
    sy_scheduler where
    export SY_CLIENT SY_THIS_NODE SY_STEP
    SY_STATE_FILE=$SY_ATTEMPT_DIR/keeper.$SY_CLIENT.$SY_PLACE_NODE
    exec >>"$SY_ATTEMPT_DIR/out.$SY_CLIENT" 2>>"$SY_ATTEMPT_DIR/err.$SY_CLIENT" || exit 1
    trap 'SY_SIGNAL=TERM' TERM INT
    trap 'sy_keeper_end' EXIT
    # shellcheck disable=SC2317 # is called: the client's container has tagged it
    sy_tag() { :; }
    sy_keeper_begin || sy_keeper_fail
    for ((k = SY_PLACE_NODE == 0; k < SY_LAUNCHER_PLACES; k++)); do
        SY_ROLE=place SY_PLACE=$k bash "${SY_LAUNCHER_SCRIPT:-$SY_STUDY_DIR/runs/$SY_RUN_ID/run.sh}" </dev/null &
        SY_PIDS+=($!)
    done
    printf 'open\n' >>"$SY_STATE_FILE" || exit 1
    # A container's end in the middle is mpirun's to notice.
    until [[ -n $SY_SIGNAL || $word == stop ]]; do
        sy_pause 1
        read -r word <"$SY_STATE_FILE.stop" || :
    done
}

# Its own node's folder of doors, and the network.
sy_keeper_begin() {
    if ((SY_PLACE_NODE > 0)); then
        SY_SCRATCH=${SY_SCRATCH_BASE:-${TMPDIR:-/tmp}}/.
        sy_places_folder || return
    fi
    sy_launcher_name && sy_launcher_sweep && sy_network_open
}

sy_keeper_fail() {
    printf 'failed\n' >>"$SY_STATE_FILE"
    exit 1
}

sy_keeper_end() {
    trap '' TERM INT
    # They end their containers themselves.
    ((${#SY_PIDS[@]} == 0)) || kill -s TERM "${SY_PIDS[@]}" 2>/dev/null
    wait
    sy_left_undo
    ((SY_PLACE_NODE == 0)) || sy_places_remove_folder
}

# --- outside: a place ------------------------------------------------------------------------

sy_place_main() {
    local answer address
    sy_scheduler where
    SY_STATE_FILE=$SY_ATTEMPT_DIR/place.$SY_CLIENT.$SY_PLACE_NODE.$SY_PLACE
    SY_PLACE_DOOR=$SY_PLACES/$SY_PLACE
    export SY_CLIENT SY_THIS_NODE SY_STEP SY_PLACE_DOOR
    trap 'SY_SIGNAL=TERM' TERM INT
    trap 'sy_launcher_stop; sy_remove_scratch' EXIT
    # shellcheck disable=SC2317 # is called: the client's container has tagged it
    sy_tag() { :; }
    sy_place_begin || sy_keeper_fail
    printf 'ready %s %s %s\n' "${answer%% *}" "$address" "$SY_PLACE_DOOR" >>"$SY_STATE_FILE" || exit 1
    while [[ -z $SY_SIGNAL ]] && kill -0 "$SY_LAUNCHER_PID" 2>/dev/null; do
        sy_pause 1
    done
}

# Sets `answer` and `address` of the caller.
sy_place_begin() {
    mkdir -m 700 "$SY_PLACE_DOOR" && mkfifo -m 600 "$SY_PLACE_DOOR/door" && sy_make_scratch &&
        sy_launcher_name && sy_launcher_processors && sy_network_device && sy_launcher_command &&
        sy_launcher_up && address=$(sy_network_attach) && sy_launcher_in_force "${answer%% *}"
}

# --- inside ----------------------------------------------------------------------------------

# Names of all places, place 0 first.
sy_places() {
    local name rest
    while read -r name rest; do
        printf '%s\n' "$name"
    done <"$SY_PLACES/list"
}

# ADDRESS/PREFIX of their networks, commas between. Of one node's network namespace: loopback.
sy_places_networks() {
    local name node door address list=''
    while read -r name node address door; do
        [[ ,$list, == *",$address,"* ]] || list+=${list:+,}$address
    done <"$SY_PLACES/list"
    # Our own are told as one: a container has a device in one of them only, and mpirun would warn.
    [[ $list != 198.1[89].* ]] || list=198.18.0.0/15
    printf '%s' "$list"
}

# What mpirun starts in another place; executed as an agent of its own (sy_mpi_agent).
sy_place_start() { # <name> <command line>
    local name node door address
    while read -r name node address door; do
        [[ $name != "$1" ]] || break
    done <"$SY_PLACES/list"
    if [[ $name != "$1" ]]; then
        sy_say "no container of this program is called $1"
        return 1
    elif [[ $node == "$SY_THIS_NODE" ]]; then
        SY_FAR_DOOR=$door sy_far_ask bash -c "PATH=\$0:\$PATH; ${*:2}" "${0%/*}"
    else
        sy_place_on_node "$node" "$door" bash -c "PATH=\$0:\$PATH; ${*:2}" "${0%/*}"
    fi
}

sy_place_on_node() { # <node> <door> <command> <argument>...
    local -r node=$1 door=$2
    local file code
    file=$(mktemp -- "$SY_ATTEMPT_DIR/far.XXXXXXXX") || return
    printf '%s\0' "${@:3}" >"$file"
    sy_scheduler on_node "$node" env "SY_FAR_FILE=${file##*/}" SY_ROLE=ask "SY_PLACE_DOOR=$door" \
        bash "${SY_LAUNCHER_SCRIPT:-$SY_STUDY_DIR/runs/$SY_RUN_ID/run.sh}"
    code=$?
    rm -f -- "$file"
    return "$code"
}

# On another node, outside of its containers: hand the command on to the one with that door.
sy_ask_main() {
    local -a argv=()
    mapfile -d '' -t argv <"$SY_ATTEMPT_DIR/$SY_FAR_FILE"
    SY_FAR_DOOR=$SY_PLACE_DOOR sy_far_ask "${argv[@]}"
}

# A place waits at its door.
sy_place_inside() {
    SY_FAR_DOOR=$SY_PLACE_DOOR sy_far_keep &
    # shellcheck disable=SC2034 # sy_inside_end's
    SY_INSIDE_PID=$!
}

# Whether each address answers: a port that nobody listens at is refused at once. An image may lack
# timeout(1), without which no answer is known.
sy_places_reach() { # <address>...
    local address said list=''
    if ! type -P timeout >/dev/null; then
        printf 'reached without-timeout\n'
        return
    fi
    for address in $1; do
        said=$(timeout 5 bash -c ": >/dev/tcp/$address/9" 2>&1)
        [[ $? == 0 || $said == *refused* ]] || list+=${list:+,}$address
    done
    printf 'reached %s\n' "${list:--}"
}
