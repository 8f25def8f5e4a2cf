#!/bin/bash
# A server that a benchmark starts on a node of its job, and that ends with it. Part of steelyard.sh.
#
# The server prints one line, `ready PID WORDS…`, when it can be used; SIGTERM stops the process PID. It
# must also end when its output is closed: so it ends when the client is killed. On another node the
# scheduler ends it with the job.

# Start a server and wait until it is ready; SY_SERVER_WORDS is its line after PID. It is stopped at the
# latest when this shell ends.
sy_server_start() { # <node> <seconds> <command> <argument>...
    local node=$1 word='' pid=''
    local -r limit=$2
    shift 2
    SY_SERVER_NODE=$node
    exec {SY_SERVER_FD}< <(sy_server_run "$node" "$@")
    SY_SERVER_SHELL=$!
    trap 'sy_server_stop' EXIT
    # shellcheck disable=SC2034 # for the benchmark
    read -r -t "$limit" -u "$SY_SERVER_FD" word pid SY_SERVER_WORDS || :
    if [[ $word != ready ]]; then
        sy_log "the server on $node did not start within $limit s, or ended"
        sy_server_stop
        return 1
    fi
    SY_SERVER_PID=$pid
}

# Run the server's command, and write the step by which the scheduler can stop it to ATTEMPT/server.CLIENT.
sy_server_run() { # <node> <command> <argument>...
    trap - EXIT
    # shellcheck disable=SC2016,SC2046 # for the shell there to expand; names
    sy_on_node "$1" "$BASH" -c "$(declare -f sy_scheduler $(compgen -A function "sy_${SY_SCHEDULER}_"))"'
        (sy_scheduler set_client && printf "step %s\n" "$SY_STEP") >"$0"; exec "$@"' \
        "$SY_ATTEMPT_DIR/server.$SY_CLIENT" "${@:2}"
}

# Stop the server: by SIGTERM or the scheduler, and after half of the grace time by SIGKILL.
sy_server_stop() {
    local deadline step=
    [[ -n ${SY_SERVER_SHELL:-} ]] || return 0
    sy_set_time deadline "$((${SY_GRACE_S:-10} * 500000))"
    read -r _ step <"$SY_ATTEMPT_DIR/server.$SY_CLIENT" || :
    if ! sy_scheduler is_this_node "$SY_SERVER_NODE" && [[ ${step:--} != - ]]; then
        sy_scheduler stop_step "$step" || :
    elif [[ -n ${SY_SERVER_PID:-} ]]; then
        kill -s TERM "$SY_SERVER_PID" 2>/dev/null || :
    else
        sy_signal_tree TERM "$SY_SERVER_SHELL"
    fi
    while kill -0 "$SY_SERVER_SHELL" 2>/dev/null && ! sy_is_past "$deadline"; do
        sy_pause 0.02
    done
    ! kill -0 "$SY_SERVER_SHELL" 2>/dev/null || sy_signal_tree KILL "$SY_SERVER_SHELL"
    exec {SY_SERVER_FD}<&-
    SY_SERVER_SHELL='' SY_SERVER_PID=''
}
