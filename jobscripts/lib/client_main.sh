#!/bin/bash
# One client of a run, its warm-ups and its time-out. Part of steelyard.sh.
#
# Its states, in ATTEMPT/client.N: nothing; `ready NODE STEP`, after scratch folder, container, setup and
# warm-up; `end CODE START END UPTIME UPTIME`. Between them it waits for `go` in ATTEMPT/go, and in mode
# sequential for the end of the client before it. Only sy_client is between START and END.
#
# sy_client runs in a child with the scratch folder as working directory; stdout and stderr are out.N and
# err.N. A signal goes to all descendants, and `end` is written also then. The container and the scratch
# folder are removed at the end; after SIGKILL the next client removes the folder. Whether the run has
# succeeded is main's decision (result.sh).
#
# Warm-ups are unmeasured executions of sy_client before `ready`. The time-out is that of one execution
# ([job] time_out), not the job's time limit; main reads which client has timed out.
# shellcheck disable=SC2153 # SY_CLIENTS and SY_CLIENT are two things

sy_client_main() {
    local code
    sy_scheduler set_client
    SY_STATE_FILE=$SY_ATTEMPT_DIR/client.$SY_CLIENT
    export SY_CLIENT SY_THIS_NODE
    # Truncated, then opened to append: a container writes to them too.
    : >"$SY_ATTEMPT_DIR/out.$SY_CLIENT" 2>"$SY_ATTEMPT_DIR/err.$SY_CLIENT" || exit 1
    exec >>"$SY_ATTEMPT_DIR/out.$SY_CLIENT" 2>>"$SY_ATTEMPT_DIR/err.$SY_CLIENT" || exit 1
    trap 'SY_SIGNAL=TERM' TERM
    trap 'SY_SIGNAL=INT' INT
    trap 'sy_launcher_stop; sy_remove_scratch; sy_write_shell_usage "$SY_CLIENT"' EXIT
    sy_make_scratch || exit 1
    sy_launcher_start || exit
    sy_has_launcher || sy_run_setup
    sy_warm_up || exit
    printf 'ready %s %s\n' "$SY_THIS_NODE" "$SY_STEP" >>"$SY_STATE_FILE" || exit 1
    sy_wait_for_go || exit 1
    sy_wait_for_turn || exit 1
    if sy_has_launcher; then
        sy_launcher_time_client
    else
        sy_time_client
    fi
    code=$?
    exit "$code"
}

# Record programs and their versions before the measured time, once, where sy_client runs: by the
# benchmark's sy_setup, else the program that its sy_find_program prints. Errors are ignored: sy_client
# reports them.
sy_run_setup() {
    sy_find_timer
    if declare -F sy_setup >/dev/null; then
        (sy_setup) &>/dev/null || :
    elif declare -F sy_find_program >/dev/null; then
        (sy_record_program) &>/dev/null || :
    fi
}

sy_record_program() {
    local program
    program=$(sy_find_program) || return
    sy_environment "$program" ${SY_PARAM_MPIRUN:+"$SY_PARAM_MPIRUN"}
}

sy_make_scratch() {
    local base=${SY_SCRATCH_BASE:-${TMPDIR:-/tmp}} line
    while IFS= read -r line; do
        [[ -z $line ]] || sy_log "$line"
    done <<<"$(sy_leftover_sweep_folders "$base")"
    SY_SCRATCH=$(sy_leftover_make_folder "$base" "steelyard.$SY_RUN_ID.$SY_CLIENT") || {
        sy_log "cannot make a scratch folder in $base"
        return 1
    }
    export SY_SCRATCH
    cd -- "$SY_SCRATCH" || return 1
}

# Remove the scratch folder, if sy_make_scratch made it.
sy_remove_scratch() {
    [[ ${SY_SCRATCH:-} == */steelyard."$SY_RUN_ID"."$SY_CLIENT".* ]] || return 0
    trap '' TERM INT
    cd / && sy_leftover_remove_folder "$SY_SCRATCH"
}

sy_wait_for_go() {
    local word='' deadline
    # Longer than main waits, so that main decides.
    sy_set_time deadline "$(((${SY_BARRIER_S:-120} + 60) * 1000000))"
    ((${SY_WARM_UP:-0} == 0)) || deadline=$((1 << 62))
    while [[ -z $SY_SIGNAL ]]; do
        read -r word <"$SY_ATTEMPT_DIR/go" || :
        [[ $word == go ]] && return 0
        if [[ $word == stop ]] || sy_is_past "$deadline"; then
            sy_log 'not started: the other clients did not get ready'
            return 1
        fi
        sy_pause 0.01
    done
    return 1
}

# In sequential mode wait until the client before this one has written its end. A killed client writes
# none; then the others wait until the job's time limit.
sy_wait_for_turn() {
    local word
    [[ ${SY_MODE:-parallel} == sequential ]] && ((SY_CLIENT > 0)) || return 0
    while [[ -z $SY_SIGNAL ]]; do
        while read -r word _; do
            [[ $word != end ]] || return 0
        done <"$SY_ATTEMPT_DIR/client.$((SY_CLIENT - 1))"
        sy_pause 0.02
    done
    return 1
}

# Call sy_client; the caller runs this in a subshell.
sy_run_client() {
    # The traps run after the foreground program has stopped and removed its files.
    trap 'exit 143' TERM
    trap 'exit 130' INT
    trap - EXIT
    sy_client
}

# Execute sy_client once and write `end CODE START END UPTIME UPTIME` to a descriptor. It runs in the
# foreground: after a signal `wait` may return -1 or that signal instead of the exit code (bash 5.2).
# Signals are sent to its descendants.
sy_run_client_timed() { # <descriptor>
    local code start end start_up end_up to=$1
    trap : TERM INT
    sy_read_clocks start start_up
    (sy_run_client) {to}>&-
    code=$?
    end=${EPOCHREALTIME//[^0-9]/}
    sy_uptime_at end_up "$end"
    printf 'end %d %s %s %s %s\n' "$code" "$start" "$end" "${start_up:--}" "${end_up:--}" >&"$to"
}

# Execute sy_client in a child with its time-out: a signal is handled at once, and the end is written.
sy_time_client() {
    local line='' chunk words out end pid code=129
    exec {out}>&1
    exec {end}< <(exec {to}>&1 1>&"$out" {out}>&- && sy_run_client_timed "$to")
    pid=$!
    sy_start_watchdog
    while ((code > 128)); do # traps only set SY_SIGNAL: a longer one could be interrupted by the next
        [[ -z $SY_SIGNAL ]] || sy_signal_tree "$SY_SIGNAL" "$pid"
        SY_SIGNAL=
        IFS= read -r -t 0.2 -u "$end" chunk
        code=$? line+=$chunk
    done
    sy_stop_watchdog
    trap '' TERM INT # the end is written also when a signal comes
    # Without it this shell may end before its child on a slow node, and the record would report a
    # process that still runs.
    wait "$pid" 2>/dev/null || :
    [[ -n $line ]] || return 1
    printf '%s\n' "$line" >>"$SY_STATE_FILE"
    words=${line#* }
    return "${words%% *}"
}

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
