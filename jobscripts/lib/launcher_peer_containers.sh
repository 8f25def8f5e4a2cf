#!/bin/bash
# The containers of one client: one on each node of its job, or with ranks=across SY_LAUNCHER_ACROSS of
# them on each node. Part of steelyard.sh; called by launcher.sh, and by mpi.sh inside.
#
# Peer 0 of the first node is the client's own container, in which sy_client and mpirun run. On every
# node a holder (SY_ROLE=holder) makes the network and starts the other peers (SY_ROLE=peer). In each
# peer's container an exec helper (launcher_exec_requests.sh) waits for commands of mpirun or the benchmark.
# All are ready before the measured time.
#
# They report to the client in ATTEMPT/holder.CLIENT.NODE and ATTEMPT/peer.CLIENT.NODE.PEER, which exist
# before they start; a report is one line. SY_PEERS, a folder on each node's disk, has the helpers'
# folders, and on the first node `list`: NAME NODE ADDRESS/PREFIX HELPER of all containers. mpirun and
# sy_on_node find a container by NAME: the node's name where each node has one container with the node's
# network. When the client ends, its end of the liveness pipe closes, and holders and peers end.
# shellcheck disable=SC2153 # SY_LAUNCHER and SY_LAUNCHED are two things

# --- outside: the client ---------------------------------------------------------------------

# Start holders on all nodes; returns when the network of this node is ready.
sy_peers_start() {
    local i k
    # Without ranks=across the first node has the client's container only, and needs no holder.
    local first=0
    SY_PEER=0 SY_PEER_NODE=0 SY_PEER_NODES=("$SY_THIS_NODE")
    ((SY_CLIENTS > 1)) || sy_lines SY_PEER_NODES sy_nodes
    if [[ -z ${SY_LAUNCHER_ACROSS:-} ]]; then
        ((${#SY_PEER_NODES[@]} > 1)) || return 0
        if [[ $SY_LAUNCHER_NETWORK != host ]]; then
            sy_log "$SY_LAUNCHER: on ${#SY_PEER_NODES[@]} nodes its containers would not reach each other: add ranks=across, or leave network= out"
            return 4
        fi
        first=1
    fi
    sy_peers_make_folder && mkfifo -m 600 "$SY_PEERS/liveness" || return
    SY_PEER_ADDRESSES=$(sy_peers_node_addresses) || return
    SY_NETWORK_BLOCK=$(sy_network_choose_block "${#SY_PEER_NODES[@]}")
    export SY_PEER_ADDRESSES SY_NETWORK_BLOCK
    # Its only writer is this shell: holders and peers end with it.
    exec {SY_LIVENESS}<>"$SY_PEERS/liveness"
    for ((i = first; i < ${#SY_PEER_NODES[@]}; i++)); do
        : >"$SY_ATTEMPT_DIR/holder.$SY_CLIENT.$i" && : >"$SY_ATTEMPT_DIR/holder.$SY_CLIENT.$i.stop" || return
        for ((k = 0; k < ${SY_LAUNCHER_ACROSS:-1}; k++)); do
            : >"$SY_ATTEMPT_DIR/peer.$SY_CLIENT.$i.$k" || return
        done
    done
    sy_peers_run_holders "$first" &
    SY_HOLD_PID=$!
    # The client's own container needs the network of its node; others start meanwhile.
    ((first > 0)) || sy_peers_wait_for "holder.$SY_CLIENT.0" open "$SY_THIS_NODE" || return
    ((${#SY_PEER_NODES[@]} == 1)) || sy_peers_start_helper
}

# Start the exec helper outside, which runs the scheduler's commands.
sy_peers_start_helper() {
    sy_exec_make_helper "$SY_PEERS/outside" || return
    sy_exec_serve "$SY_PEERS/outside" sy_exec_run_scheduler &
    SY_OUTSIDE_PID=$!
    export SY_OUTSIDE=$SY_PEERS/outside
}

sy_peers_make_folder() {
    SY_PEERS=$(sy_leftover_make_folder "${SY_SCRATCH%/*}" "steelyard.$SY_RUN_ID.$SY_CLIENT.peers") &&
        export SY_PEERS
}

# Print the addresses of the nodes, in their order; nothing for a single node.
sy_peers_node_addresses() {
    local node list='' address
    ((${#SY_PEER_NODES[@]} > 1)) || return 0
    for node in "${SY_PEER_NODES[@]}"; do
        address=$(sy_node_address "$node") || return
        list+=${list:+ }$address
    done
    printf '%s' "$list"
}

# Run the holders until the client closes its end of the liveness pipe, or has ended.
sy_peers_run_holders() { # <first node's number>
    local liveness deadline i
    local -a pids=()
    trap '' INT TERM
    trap - EXIT
    sy_peers_close_liveness
    for ((i = $1; i < ${#SY_PEER_NODES[@]}; i++)); do
        # This subshell ends with the holder, also when both get a signal.
        (trap : INT TERM && sy_peers_run_holder "$i" </dev/null) &
        pids+=($!)
    done
    exec {liveness}<"$SY_PEERS/liveness"
    read -r _ <&"$liveness"
    # A starter of remote programs kills them when it gets a signal: request the stop by a file first.
    for ((i = $1; i < ${#SY_PEER_NODES[@]}; i++)); do
        printf 'stop\n' >>"$SY_ATTEMPT_DIR/holder.$SY_CLIENT.$i.stop"
    done
    (($1 > 0)) || sy_signal_tree TERM "${pids[0]}"
    sy_set_time deadline "$((${SY_GRACE_S:-10} * 2000000))"
    while kill -0 "${pids[@]}" 2>/dev/null && ! sy_is_past "$deadline"; do
        sy_pause 0.05
    done
    sy_signal_tree TERM "${pids[@]}"
    wait
}

sy_peers_run_holder() { # <node's number>
    local -r script=${SY_LAUNCHER_SCRIPT:-$SY_STUDY_DIR/runs/$SY_RUN_ID/run.sh}
    export SY_ROLE=holder SY_PEER_NODE=$1
    if (($1 == 0)); then
        bash "$script"
    else
        sy_scheduler on_node "${SY_PEER_NODES[$1]}" bash "$script"
    fi
}

# For children of the client, which must not keep its end of the liveness pipe open.
sy_peers_close_liveness() {
    [[ -z ${SY_LIVENESS:-} ]] || exec {SY_LIVENESS}>&-
}

# Wait for a report that begins with the word; sets `answer` of the caller to its rest.
sy_peers_wait_for() { # <file> <word> <node>
    local word deadline
    sy_set_time deadline "$((${SY_BARRIER_S:-120} * 1000000))"
    while true; do
        read -r word answer <"$SY_ATTEMPT_DIR/$1" || :
        [[ $word != "$2" ]] || return 0
        if [[ $word == failed || -n $SY_SIGNAL ]] || sy_is_past "$deadline"; then
            [[ $word == failed ]] || sy_log "$SY_LAUNCHER: a container on $3 did not start${SY_SIGNAL:+ before SIG$SY_SIGNAL came}"
            return 1
        fi
        sy_pause 0.02
    done
}

# When the client's own container is ready: wait for the others, and write the list.
sy_peers_write_list() { # <this container's processors>
    local i k answer name cpus address helper
    local -a processors=("$1")
    [[ -n ${SY_PEERS:-} ]] || return 0
    name=localhost
    [[ -n ${SY_LAUNCHER_ACROSS:-} ]] || name=$SY_THIS_NODE
    address=$(sy_network_attach) || return
    printf '%s %s %s -\n' "$name" "$SY_THIS_NODE" "$address" >"$SY_PEERS/list"
    for i in "${!SY_PEER_NODES[@]}"; do
        ((i == 0)) || sy_peers_wait_for "holder.$SY_CLIENT.$i" open "${SY_PEER_NODES[i]}" || return
        for ((k = i == 0; k < ${SY_LAUNCHER_ACROSS:-1}; k++)); do
            sy_peers_wait_for "peer.$SY_CLIENT.$i.$k" ready "${SY_PEER_NODES[i]}" || return
            read -r cpus address helper <<<"$answer"
            sy_peers_set_name "${#processors[@]}"
            printf '%s %s %s %s\n' "$name" "${SY_PEER_NODES[i]}" "$address" "$helper" >>"$SY_PEERS/list"
            processors+=("$cpus")
        done
    done
    [[ -n ${SY_LAUNCHER_ACROSS:-} ]] || return 0
    sy_tag launcher_cpus "$(IFS=';' && printf '%s' "${processors[*]}")"
    [[ $SY_LAUNCHER_NETWORK == host ]] || sy_peers_check_connections
}

# Set `name` of the caller. For mpirun it is an address, which needs no name server. Containers with the
# node's network get an unused one (class E), to which nothing is ever sent.
sy_peers_set_name() { # <container's number>
    if [[ -z ${SY_LAUNCHER_ACROSS:-} ]]; then
        name=${SY_PEER_NODES[i]}
    elif [[ $SY_LAUNCHER_NETWORK == host ]]; then
        name=240.0.$(($1 / 250)).$(($1 % 250 + 1))
    else
        name=${address%/*}
    fi
}

# Check that the first container reaches all others, before anything is measured.
sy_peers_check_connections() {
    local address answer list=''
    while read -r _ _ address _; do
        list+=${list:+ }${address%/*}
    done <"$SY_PEERS/list"
    sy_tag launcher_addresses "$list"
    if sy_launcher_send "reach $list" && sy_launcher_read_answer reached && [[ $answer == - ]]; then
        sy_condition_verify
        return
    fi
    if [[ ${answer:-} == without-timeout ]]; then
        sy_log "$SY_LAUNCHER: its image lacks the program timeout (Debian: coreutils), which looks whether its containers reach each other"
        return 1
    fi
    sy_log "$SY_LAUNCHER: its containers do not reach each other by network=$SY_LAUNCHER_NETWORK (no answer from ${answer:-any}): a firewall, or what the nodes' network lets pass"
    return 1
}

sy_peers_stop() {
    [[ -n ${SY_LIVENESS:-} ]] || return 0
    if [[ -n ${SY_OUTSIDE_PID:-} ]]; then
        sy_signal_tree TERM "$SY_OUTSIDE_PID"
        wait "$SY_OUTSIDE_PID" 2>/dev/null
    fi
    exec {SY_LIVENESS}>&-
    wait "$SY_HOLD_PID" 2>/dev/null
    sy_peers_remove_folder
}

# Remove the folder, if sy_peers_make_folder made it.
sy_peers_remove_folder() {
    [[ ${SY_PEERS:-} != */steelyard."$SY_RUN_ID"."$SY_CLIENT".peers.* ]] || sy_leftover_remove_folder "$SY_PEERS"
}

# --- outside: a node's holder ----------------------------------------------------------------

sy_holder_main() {
    local k word=''
    sy_scheduler set_client
    export SY_CLIENT SY_THIS_NODE SY_STEP
    SY_STATE_FILE=$SY_ATTEMPT_DIR/holder.$SY_CLIENT.$SY_PEER_NODE
    exec >>"$SY_ATTEMPT_DIR/out.$SY_CLIENT" 2>>"$SY_ATTEMPT_DIR/err.$SY_CLIENT" || exit 1
    trap 'SY_SIGNAL=TERM' TERM INT
    trap 'sy_holder_end' EXIT
    # shellcheck disable=SC2317 # is called: the client's container has tagged it
    sy_tag() { :; }
    sy_holder_begin || sy_holder_fail
    for ((k = SY_PEER_NODE == 0; k < ${SY_LAUNCHER_ACROSS:-1}; k++)); do
        SY_ROLE=peer SY_PEER=$k bash "${SY_LAUNCHER_SCRIPT:-$SY_STUDY_DIR/runs/$SY_RUN_ID/run.sh}" </dev/null &
        SY_PIDS+=($!)
    done
    printf 'open\n' >>"$SY_STATE_FILE" || exit 1
    # mpirun notices when a container ends early.
    until [[ -n $SY_SIGNAL || $word == stop ]]; do
        sy_pause 1
        read -r word <"$SY_STATE_FILE.stop" || :
    done
}

# Make the node's folder of helpers and its network.
sy_holder_begin() {
    if ((SY_PEER_NODE > 0)); then
        SY_SCRATCH=${SY_SCRATCH_BASE:-${TMPDIR:-/tmp}}/.
        sy_peers_make_folder || return
    fi
    sy_launcher_set_name && sy_launcher_sweep_leftovers && sy_network_set_up_node
}

sy_holder_fail() {
    printf 'failed\n' >>"$SY_STATE_FILE"
    exit 1
}

sy_holder_end() {
    trap '' TERM INT
    # They end their containers themselves.
    ((${#SY_PIDS[@]} == 0)) || kill -s TERM "${SY_PIDS[@]}" 2>/dev/null
    wait
    sy_leftover_remove_own
    ((SY_PEER_NODE == 0)) || sy_peers_remove_folder
}

# --- outside: a peer -------------------------------------------------------------------------

sy_peer_main() {
    local answer address
    sy_scheduler set_client
    SY_STATE_FILE=$SY_ATTEMPT_DIR/peer.$SY_CLIENT.$SY_PEER_NODE.$SY_PEER
    SY_PEER_HELPER=$SY_PEERS/$SY_PEER
    export SY_CLIENT SY_THIS_NODE SY_STEP SY_PEER_HELPER
    trap 'SY_SIGNAL=TERM' TERM INT
    trap 'sy_launcher_stop; sy_remove_scratch' EXIT
    # shellcheck disable=SC2317 # is called: the client's container has tagged it
    sy_tag() { :; }
    sy_peer_begin || sy_holder_fail
    printf 'ready %s %s %s\n' "${answer%% *}" "$address" "$SY_PEER_HELPER" >>"$SY_STATE_FILE" || exit 1
    trap 'exit' TERM INT
    [[ -z $SY_SIGNAL ]] || exit
    wait "$SY_LAUNCHER_PID"
}

# Start the peer's container. Sets `answer` and `address` of the caller.
sy_peer_begin() {
    sy_exec_make_helper "$SY_PEER_HELPER" && sy_make_scratch &&
        sy_launcher_set_name && sy_launcher_choose_processors && sy_network_make_device && sy_launcher_make_command &&
        sy_launcher_start_container && address=$(sy_network_attach) && sy_launcher_check_limits "${answer%% *}"
}

# --- inside ----------------------------------------------------------------------------------

# Print the names of all containers, the client's first.
sy_peers_list_names() {
    local name rest
    while read -r name rest; do
        printf '%s\n' "$name"
    done <"$SY_PEERS/list"
}

# Print ADDRESS/PREFIX of their networks, commas between; loopback where all are in one namespace.
sy_peers_list_networks() {
    local address list=''
    while read -r _ _ address _; do
        [[ ,$list, == *",$address,"* ]] || list+=${list:+,}$address
    done <"$SY_PEERS/list"
    # Steelyard's blocks are listed as one network: a container has a device in one block only, and
    # mpirun would warn about the others.
    [[ $list != 198.1[89].* ]] || list=198.18.0.0/15
    printf '%s' "$list"
}

# Print the addresses that do not answer, `-`: none. A closed port is refused at once. An image may lack
# timeout(1), without which nothing can be probed.
sy_peers_probe() { # <address>...
    local address errors list=''
    if ! type -P timeout >/dev/null; then
        printf 'reached without-timeout\n'
        return
    fi
    for address in $1; do
        errors=$(timeout 5 bash -c ": >/dev/tcp/$address/9" 2>&1)
        [[ $? == 0 || $errors == *refused* ]] || list+=${list:+,}$address
    done
    printf 'reached %s\n' "${list:--}"
}
