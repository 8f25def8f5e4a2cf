#!/bin/bash
# A server that a benchmark starts on a node of its job, and that ends with it. Part of steelyard.sh.
#
# The server's program prints one line, `ready PID WORDS…`, when it can be used; PID is the process
# to be asked to stop (TERM). It must also end when nobody reads its output any more: so it is gone
# whoever was killed. On another node the scheduler's end of the job sees to that.

# Start one and wait for its word; SY_SERVER_WORDS is what stands behind the process id. Stopped
# at the latest when this shell ends.
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

# On another node it says by which word it can be stopped there.
sy_server_run() { # <node> <command> <argument>...
    trap - EXIT
    # shellcheck disable=SC2016,SC2046 # for the shell there to expand; names
    sy_on_node "$1" "$BASH" -c "$(declare -f sy_scheduler $(compgen -A function "sy_${SY_SCHEDULER}_"))"'
        (sy_scheduler set_client && printf "step %s\n" "$SY_STEP") >"$0"; exec "$@"' \
        "$SY_ATTEMPT_DIR/server.$SY_CLIENT" "${@:2}"
}

# Ask it to stop, wait, and then make it.
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
