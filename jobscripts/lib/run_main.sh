#!/bin/bash
# The shell functions of every run. The files of this folder are joined to a study's lib/steelyard.sh
# (registry.library). A run's script (runs/RUN_ID/run.sh, made by jobscripts/runscript.py) sets the
# variables below, sources that file, defines `sy_client` (the benchmark's job.sh) and ends with
# `sy_main`.
#
# Set by run.sh:
#   SY_STUDY_DIR  the study's folder, on a file system that all nodes see
#   SY_RUN_ID     the run
#   SY_CLIENTS    how many clients run the benchmark in parallel
#   SY_PARAM_*    the benchmark's parameters, names in capitals; sizes in bytes, bools true/false
#   SY_WORDS_*    a list of NAME=value instead, for a parameter that is an environment
# May be set by the process that starts run.sh:
#   SY_SCHEDULER      a file of schedulers/; default: that of the surrounding job, else local
#   SY_ATTEMPT        name of the attempt folder; default: the scheduler's attempt_name
#   SY_TIME_LIMIT_S   the run's time limit in s: distinguishes a time-out from another SIGTERM
#   SY_SCRATCH_BASE   the folder of scratch folders; default: $TMPDIR, else /tmp
#   SY_BARRIER_S      how long clients may take to start, default 120 s; no limit with a warm-up
#   SY_WARM_UP        unmeasured executions of sy_client before the measured one, default 0
#   SY_TIME_OUT_S     seconds that one execution may take; empty: only the job's own limit
#   SY_BIND           what MPI ranks are bound to: none (default), core or socket (sy_mpi_run)
#   SY_RETRIES        how often a run that failed or timed out is restarted, default 0
#   SY_IDLE_S         idle seconds before the clients start and after they have ended
#   SY_MODE           parallel (default), or sequential: a client starts when the one before has ended
#   SY_LAUNCHER*      see launcher.sh
#   SY_GRACE_S        how long clients may take to stop after SIGTERM, default 10 s
# Available to sy_client:
#   SY_CLIENT (0, 1, …), SY_CLIENTS, SY_ATTEMPT_DIR, SY_SCRATCH (fresh, its working directory,
#   removed afterwards); its stdout and stderr are out.CLIENT and err.CLIENT; the functions of
#   nodes.sh, and sy_tag, sy_environment, sy_measured
#
# Exit code of run.sh: 0 completed, 1 failed or longer than SY_TIME_OUT_S, 143 stopped by SIGTERM (130 by
# SIGINT).
# Clients and main communicate by ATTEMPT/client.N and ATTEMPT/go. Both exist before the clients start
# and are written in place: on NFS opening a cached file requests its new contents, but a file that was
# missing may stay missing for a while.

# shellcheck disable=SC2153 # SY_CLIENTS and SY_CLIENT are two things
set -u
# Numbers need points and bytes must be bytes, whatever the user's locale.
export LC_ALL=C

if [[ -z ${EPOCHREALTIME:-} ]]; then
    printf 'steelyard: bash %s on %s is too old: 5.0 or newer is needed\n' "$BASH_VERSION" "$HOSTNAME" >&2
    exit 1
fi

SY_SIGNAL=
SY_PIDS=()
SY_LAUNCH_LOG=
# shellcheck disable=SC2034 # scheduler.sh's
SY_SCHEDULERS=()

sy_log() { # <message>
    printf 'steelyard: %s\n' "$1" >&2
}

# Sleep without a process: by a read from a pipe without a writer.
sy_pause() { # <seconds>
    [[ -n ${SY_PAUSE_FD:-} ]] || exec {SY_PAUSE_FD}<> <(:)
    read -r -t "$1" -u "$SY_PAUSE_FD" || :
}

# --- the attempt -----------------------------------------------------------------------------

sy_prepare() {
    sy_choose_scheduler || return
    sy_scheduler begin
    SY_ATTEMPT=${SY_ATTEMPT:-$(sy_scheduler attempt_name)}
    SY_ATTEMPT_DIR=$SY_STUDY_DIR/runs/$SY_RUN_ID/$SY_ATTEMPT
    mkdir -p -- "$SY_ATTEMPT_DIR" || {
        sy_log "cannot make the folder $SY_ATTEMPT_DIR"
        return 1
    }
    SY_MAIN=$$@$HOSTNAME
    export SY_SCHEDULER SY_ATTEMPT SY_ATTEMPT_DIR SY_MAIN
}

# Make the files by which the clients of one try and main communicate.
sy_prepare_try() {
    local i
    SY_PIDS=()
    sy_reset_result
    sy_write_result started '' || return 1
    : >"$SY_ATTEMPT_DIR/go" || return 1
    for ((i = 0; i < SY_CLIENTS; i++)); do
        : >"$SY_ATTEMPT_DIR/client.$i" || return 1
    done
}

# --- main: starts the clients and waits for them ---------------------------------------------

sy_main() {
    case ${SY_ROLE:-main} in
    client) sy_client_main ;;
    inside) sy_container_main ;;
    holder) sy_holder_main ;;
    peer) sy_peer_main ;;
    request) sy_request_main ;;
    *) sy_run ;;
    esac
}

sy_run() {
    local retries=${SY_RETRIES:-0}
    # shellcheck disable=SC2034 # result.json's
    SY_TRIES=()
    sy_prepare || exit 1
    while true; do
        sy_try || exit 1
        if [[ $SY_STATE == completed || -n $SY_SIGNAL ]] || ((retries-- <= 0)); then
            break
        fi
        sy_archive_try "$SY_STATE" "$SY_REASON" || exit 1
    done
    [[ $SY_STATE != completed ]] || sy_tag_completed_run
    [[ $SY_STATE == completed ]] && sy_wait_idle after && exit 0
    sy_log "$SY_RUN_ID: $SY_STATE: $SY_REASON"
    case $SY_SIGNAL in
    TERM) exit 143 ;;
    INT) exit 130 ;;
    esac
    exit 1
}

# Run the clients once. Sets SY_STATE and SY_REASON, also in result.json.
sy_try() {
    SY_REASON='' SY_STATE=completed
    trap 'SY_SIGNAL=TERM' TERM
    trap 'SY_SIGNAL=INT' INT
    sy_prepare_try || return 1
    [[ -e $SY_ATTEMPT_DIR/spans.run ]] || sy_wait_idle before
    [[ -n $SY_SIGNAL ]] || sy_scheduler launch "$SY_STUDY_DIR/runs/$SY_RUN_ID/run.sh"
    sy_open_barrier || SY_REASON=$SY_BARRIER_REASON
    sy_wait_clients
    # A second SIGTERM must not interrupt what follows, nor the programs that it starts.
    trap '' TERM INT
    sy_write_shell_usage main
    sy_collect_clients
    if [[ -n $SY_SIGNAL ]]; then
        SY_STATE=$(sy_stopped_state)
        SY_REASON=$(sy_stopped_reason "$SY_STATE")
    elif sy_has_client_timed_out; then
        SY_STATE=timeout SY_REASON="stopped after its time-out of $SY_TIME_OUT_S s"
    elif [[ -n $SY_REASON ]] || ! SY_REASON=$(sy_client_failure_reason); then
        SY_STATE=failed
    fi
    sy_write_result "$SY_STATE" "$SY_REASON"
}

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

sy_is_any_client_running() {
    local pid
    for pid in "${SY_PIDS[@]}"; do
        kill -0 "$pid" 2>/dev/null && return 0
    done
    return 1
}

# Start the clients together, when all of them have reported `ready`. With a warm-up there is no limit of
# time but the job's.
sy_open_barrier() {
    local i=0 deadline word
    sy_set_time deadline "$((${SY_BARRIER_S:-120} * 1000000))"
    ((${SY_WARM_UP:-0} == 0)) || deadline=$((1 << 62))
    SY_BARRIER_REASON=
    while ((i < SY_CLIENTS)); do
        word=
        read -r word _ <"$SY_ATTEMPT_DIR/client.$i" || :
        if [[ $word == ready ]]; then
            i=$((i + 1))
            continue
        fi
        if [[ -n $SY_SIGNAL ]]; then
            break
        elif ! sy_is_any_client_running; then
            SY_BARRIER_REASON="client $i never started$(sy_last_message "err.$i" "$SY_LAUNCH_LOG")"
            break
        elif sy_is_past "$deadline"; then
            SY_BARRIER_REASON="client $i had not started after ${SY_BARRIER_S:-120} s"
            break
        fi
        sy_pause 0.01
    done
    if ((i < SY_CLIENTS)); then
        printf 'stop\n' >>"$SY_ATTEMPT_DIR/go"
        return 1
    fi
    printf 'go\n' >>"$SY_ATTEMPT_DIR/go"
}

# Wait for the clients. A trapped signal ends `wait` early: then all clients are stopped.
sy_wait_clients() {
    local pid
    for pid in "${SY_PIDS[@]}"; do
        while [[ -z $SY_SIGNAL ]] && kill -0 "$pid" 2>/dev/null; do
            wait "$pid"
        done
    done
    [[ -z $SY_SIGNAL ]] || sy_stop_clients
}

sy_stop_clients() {
    local deadline
    sy_set_time deadline "$((${SY_GRACE_S:-10} * 1000000))"
    trap '' TERM INT
    sy_request_stop
    while sy_is_any_client_running && ! sy_is_past "$deadline"; do
        sy_pause 0.05
    done
    ! sy_is_any_client_running || sy_signal_tree KILL "${SY_PIDS[@]}"
    wait
}

# Request the clients to stop, by the scheduler where it can: their starter may kill them at a SIGTERM.
sy_request_stop() {
    local step=
    read -r _ _ step <"$SY_ATTEMPT_DIR/client.0" || :
    [[ ${step:--} != - ]] && sy_scheduler stop_step "$step" && return
    sy_signal_tree TERM "${SY_PIDS[@]}"
}

# Signal processes and all their descendants. They are listed before the first one is signaled.
sy_signal_tree() { # <signal> <pid>...
    local signal=$1 pid parent i
    local -a tree pids=() parents=()
    shift
    tree=("$@")
    while read -r pid parent; do
        pids+=("$pid") parents+=("$parent")
    done < <(trap '' TERM INT && sy_list_processes)
    local -A seen=()
    for ((i = 0; i < ${#tree[@]}; i++)); do
        seen[${tree[i]}]=1
        for pid in "${!pids[@]}"; do
            [[ ${parents[pid]} == "${tree[i]}" && -z ${seen[${pids[pid]}]:-} ]] &&
                tree+=("${pids[pid]}")
        done
    done
    kill -s "$signal" -- "${tree[@]}" 2>/dev/null || :
}

# Print "PID PARENT" of every process; an image may lack ps.
sy_list_processes() {
    local pid
    local -a stat=()
    ps -A -o pid= -o ppid= 2>/dev/null && return
    for pid in /proc/[0-9]*; do
        pid=${pid#/proc/}
        ! sy_read_process_stat "$pid" || printf '%s %s\n' "$pid" "${stat[1]}"
    done
}
