#!/bin/bash
# The time-out of one execution of sy_client: [job] time_out, not the job's time limit. Part of
# steelyard.sh; the client starts the watchdog, and main reads which client has timed out.
# shellcheck disable=SC2153 # SY_CLIENTS and SY_CLIENT are two things

# Start a process that sends SIGALRM to this shell at the time-out. SIGTERM means a stop from outside.
sy_start_watchdog() {
    local -r shell=$BASHPID
    SY_WATCHDOG_PID=
    [[ -n ${SY_TIME_OUT_S:-} ]] || return 0
    trap 'SY_SIGNAL=TERM SY_TIMED_OUT=1' ALRM
    (
        trap 'exit 0' TERM
        trap - EXIT
        sy_peers_close_liveness
        sy_pause "$SY_TIME_OUT_S"
        kill -s ALRM "$shell" 2>/dev/null
    ) &
    SY_WATCHDOG_PID=$!
}

sy_stop_watchdog() {
    trap '' ALRM
    [[ -z $SY_WATCHDOG_PID ]] || kill "$SY_WATCHDOG_PID" 2>/dev/null || :
    [[ -z ${SY_TIMED_OUT:-} ]] || printf 'timeout\n' >>"$SY_STATE_FILE"
}

# Whether a client of this attempt has timed out.
sy_has_client_timed_out() {
    local i
    for ((i = 0; i < SY_CLIENTS; i++)); do
        grep -qx timeout "$SY_ATTEMPT_DIR/client.$i" && return 0
    done
    return 1
}
