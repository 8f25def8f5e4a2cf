#!/bin/bash
# Network benchmarks: a server on the job's second node and a client on every other one, sequentially or
# in parallel. Part of steelyard.sh; server.sh starts and stops the server.
#
# With one node both ends are on it, which the tag network.loopback states. In parallel mode there is a
# server for each client, all on one node. A port is random, below the kernel's ephemeral ports and not in
# use; a server that does not listen gets another one, 20 times. Servers end with the client, also if it is
# killed.
#
# The output is one JSON document with each pair's nodes, exit code, last errors and report. A client that
# fails does not end the others; its exit code is that of the whole.

SY_PAIR_LISTEN_S=30 # a virtual node needs a second or two to start a program

# Run `client NODE ADDRESS PORT` for every client node and print one JSON document: the client's output
# is `report` of its pair, unchanged (`json`) or as a string (`text`). @PORT@ and @ADDRESS@ are replaced
# in the server's command; the server may use ports PORT to PORT + 63.
sy_run_pairs() { # <sequential|parallel> <json|text> <client function> <server command>...
    local -r mode=$1 form=$2 client=$3
    local -a nodes=() codes=()
    local server address i count=1
    shift 3
    sy_lines nodes sy_nodes
    server=${nodes[1]:-${nodes[0]}}
    ((${#nodes[@]} < 2)) || nodes=("${nodes[0]}" "${nodes[@]:2}")
    address=$(sy_pair_address "$server") || return
    [[ $mode != parallel ]] || count=${#nodes[@]}
    sy_tag network.server "$server"
    sy_tag network.loopback "$(sy_pair_is_loopback "${nodes[0]}" "$server")"
    sy_server_start "$server" "$SY_PAIR_LISTEN_S" "$BASH" -c \
        "$(declare -f sy_pair_run_servers sy_pair_start_server); sy_pair_run_servers \"\$@\"" - \
        "$count" "${@//@ADDRESS@/$address}" || return
    sy_pair_run_clients "$mode" "$client" "$address"
    sy_server_stop
    sy_pair_print_document "$form" "$server" "$address"
    sy_pair_report_failure
}

# Print the server's address. Without a scheduler, and with one node, both ends are on this host.
sy_pair_address() { # <server>
    if sy_scheduler is_this_node "$1"; then
        printf '127.0.0.1\n'
    else
        sy_node_address "$1"
    fi
}

sy_pair_is_loopback() { # <client> <server>
    if [[ $1 == "$2" ]]; then
        printf 'true'
    else
        printf 'false'
    fi
}

# --- on the server's node; self-contained ----------------------------------------------------

# Run the servers and print `ready PID PORT…` when all listen. They end with this shell: by a signal, or
# when its output is closed.
sy_pair_run_servers() { # <count> <command>...
    local i port='' ports=''
    local -r count=$1
    shift
    trap '' PIPE
    trap 'exit 0' TERM INT
    for ((i = 0; i < count; i++)); do
        sy_pair_start_server "$@" || exit 1
        ports+=" $port"
    done
    printf 'ready %d%s\n' "$BASHPID" "$ports"
    while printf '.' 2>/dev/null; do
        sleep 1 &
        wait "$!"
    done
}

# Start a server on a random port below the kernel's ephemeral ports. Sets `port` of the caller.
sy_pair_start_server() { # <command>...
    local try n hex pid
    for ((try = 0; try < 20; try++)); do
        port=$((20000 + RANDOM % 190 * 64))
        printf -v hex ':%04X 0*:0000 0A' "$port"
        grep -qs "$hex" /proc/net/tcp /proc/net/tcp6 && continue
        # Ends with this shell, also when that is killed.
        setpriv --pdeathsig KILL "${@//@PORT@/$port}" >/dev/null &
        pid=$!
        for ((n = 0; n < 1000; n++)); do
            kill -0 "$pid" 2>/dev/null || break
            ! grep -qs "$hex" /proc/net/tcp /proc/net/tcp6 || return 0
            sleep 0.02
        done
        kill "$pid" 2>/dev/null
    done
    printf 'steelyard: %s: listens on none of 20 ports on %s\n' "$1" "$HOSTNAME" >&2
    return 1
}

# --- the clients -----------------------------------------------------------------------------

# Run the clients. Sets `codes` of the caller, which has `nodes`.
sy_pair_run_clients() { # <mode> <client function> <address>
    local i
    local -a pids=() ports=()
    read -r -a ports <<<"$SY_SERVER_WORDS"
    for i in "${!nodes[@]}"; do
        "$2" "${nodes[i]}" "$3" "${ports[i]:-${ports[0]}}" \
            >"$SY_ATTEMPT_DIR/pair.$i.out" 2>"$SY_ATTEMPT_DIR/pair.$i.err" &
        pids[i]=$!
        [[ $1 == parallel ]] || wait "$!"
    done
    for i in "${!nodes[@]}"; do
        wait "${pids[i]}"
        codes[i]=$?
    done
}

sy_pair_print_document() { # <form> <server> <address>; reads `nodes` and `codes` of the caller
    local i
    printf '{"pairs":['
    for i in "${!nodes[@]}"; do
        ((i == 0)) || printf ','
        printf '{"client":%s,"server":%s,"address":%s,"exit_code":%d,"errors":%s,"report":' \
            "$(sy_json_string "${nodes[i]}")" "$(sy_json_string "$2")" "$(sy_json_string "$3")" \
            "${codes[i]}" "$(sy_json_string "$(tail -c 500 -- "$SY_ATTEMPT_DIR/pair.$i.err")")"
        if [[ $1 == json && -s $SY_ATTEMPT_DIR/pair.$i.out ]]; then
            cat -- "$SY_ATTEMPT_DIR/pair.$i.out"
        else
            sy_json_string "$(<"$SY_ATTEMPT_DIR/pair.$i.out")"
        fi
        printf '}'
    done
    printf ']}\n'
}

# Log the first failed client and return its exit code; reads `nodes` and `codes` of the caller.
sy_pair_report_failure() {
    local i
    for i in "${!nodes[@]}"; do
        ((codes[i] == 0)) && continue
        sy_log "the client on ${nodes[i]} ended with ${codes[i]}$(sy_last_message "pair.$i.err")"
        return "${codes[i]}"
    done
}
