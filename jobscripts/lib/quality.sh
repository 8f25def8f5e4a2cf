#!/bin/bash
# Warm-up, time-out, retries, idle time, and tags of the software that a run used. Part of steelyard.sh.
#
# Set by run.sh, from [job] of the study:
#   SY_WARM_UP     unmeasured executions of sy_client before the measured one, default 0
#   SY_TIME_OUT_S  seconds that one execution may take; empty: only the job's own limit
#   SY_BIND        what MPI ranks are bound to: none (default), core or socket (sy_mpi_run)
#   SY_RETRIES     how often a run that failed or timed out is restarted, default 0
#   SY_IDLE_S      idle seconds before the clients start and after they have ended
# shellcheck disable=SC2153 # SY_CLIENTS and SY_CLIENT are two things

# --- idle ------------------------------------------------------------------------------------

# Wait, and write a span (docs/formats.md part 6): its samples show the nodes' idle power.
sy_wait_idle() { # <before|after>
    local deadline begin=${EPOCHREALTIME//[^0-9]/}
    ((${SY_IDLE_S:-0} > 0)) || return 0
    trap 'SY_SIGNAL=TERM' TERM
    trap 'SY_SIGNAL=INT' INT
    sy_set_time deadline "$((SY_IDLE_S * 1000000))"
    until [[ -n $SY_SIGNAL ]] || sy_is_past "$deadline"; do
        sy_pause 1
    done
    [[ -n $SY_SIGNAL ]] || printf '{"span":"idle_%s","begin_unix_s":%s,"end_unix_s":%s}\n' "$1" \
        "$(sy_format_seconds "$begin")" "$(sy_format_seconds "${EPOCHREALTIME//[^0-9]/}")" \
        >>"$SY_ATTEMPT_DIR/spans.run"
}

# --- warm-up ---------------------------------------------------------------------------------

# Execute the warm-ups, before the client reports `ready`, so that the clients still start together. The
# output is in ATTEMPT/warm-up.N; a warm-up that fails fails the run.
sy_warm_up() {
    local n code folder
    for ((n = 1; n <= ${SY_WARM_UP:-0}; n++)); do
        folder=$SY_ATTEMPT_DIR/warm-up.$n
        mkdir -p -- "$folder" || return 1
        if sy_has_launcher; then
            sy_launcher_run_client "${folder##*/}"
        else
            SY_ATTEMPT_DIR=$folder sy_warm_up_once
        fi
        code=$?
        sy_empty_scratch
        if ((code != 0)); then
            sy_log "warm-up $n failed (exit code $code): $(tail -n 1 -- "$folder/err.$SY_CLIENT")"
            return "$code"
        fi
    done
}

sy_warm_up_once() {
    (sy_run_client) >"$SY_ATTEMPT_DIR/out.$SY_CLIENT" 2>"$SY_ATTEMPT_DIR/err.$SY_CLIENT"
}

# Remove a warm-up's files: the measured execution must not find them.
sy_empty_scratch() {
    find "$SY_SCRATCH" -mindepth 1 -xdev -delete
}

# --- time-out --------------------------------------------------------------------------------

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

# --- retries ---------------------------------------------------------------------------------

# Move the files of a failed try to ATTEMPT/try.N; result.json of the next try lists it.
sy_archive_try() { # <state> <reason>
    local n=1 file
    while ! mkdir -- "$SY_ATTEMPT_DIR/try.$n" 2>/dev/null; do
        n=$((n + 1))
        ((n < 1000)) || return 1
    done
    for file in "$SY_ATTEMPT_DIR"/*; do
        case ${file##*/} in
        try.* | job.out | record | spans.run) ;;
        *) mv -- "$file" "$SY_ATTEMPT_DIR/try.$n/" || return 1 ;;
        esac
    done
    SY_TRIES+=("{\"state\":$(sy_json_string "$1"),\"reason\":$(sy_json_or_null "$2")}")
    sy_log "$SY_RUN_ID: try $n $1: $2; trying again"
}

# --- tags and software -----------------------------------------------------------------------

# Add a tag of this run on this node (docs/formats.md part 7).
sy_tag() { # <key> <value>
    local value=${2//[[:cntrl:]]/ }
    printf '%s=%s\n' "$1" "${value:0:1000}" >>"$SY_ATTEMPT_DIR/tags.$SY_CLIENT"
}

sy_tag_nonempty() { # <key> <value, empty where it is not known>
    [[ -z $2 ]] || sy_tag "$1" "$2"
}

# Tag a completed run after the measured time: tags that cost time, or whose files must not be in the
# page cache of a run with cold caches. A benchmark's own such function is `sy_after`.
sy_tag_completed_run() {
    local SY_CLIENT=0
    sy_tag_nonempty scheduler.version "$(sy_scheduler version)"
    ! declare -F sy_after >/dev/null || (sy_after) || :
    sy_write_shell_usage main # the record includes this function's usage
} </dev/null &>/dev/null

# Write programs, the libraries they load and their checksums, one JSON line each. The number of
# processes does not depend on the number of files: on a virtual node each costs milliseconds.
sy_environment() { # <program>...
    local path sum
    local -a paths
    local -A kinds=()
    sy_lines paths type -P -- "$@"
    ((${#paths[@]} > 0)) || return 0
    while read -r path; do
        [[ -z $path ]] || kinds[$path]=library
    done <<<"$(ldd "${paths[@]}" 2>/dev/null | sed -nE 's/.*=> (\/[^ ]+) .*/\1/p')"
    while read -r path; do
        kinds[$path]=program
    done <<<"$(readlink -f -- "${paths[@]}")"
    sha256sum -- "${!kinds[@]}" 2>/dev/null | while read -r sum path; do
        printf '{"kind":"%s","path":' "${kinds[$path]:-library}"
        sy_json_string "$path"
        printf ',"sha256":"%s"}\n' "$sum"
    done | sort >>"$SY_ATTEMPT_DIR/environment.$SY_CLIENT"
}
