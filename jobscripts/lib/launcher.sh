#!/bin/bash
# A client's container: started before the measured time, told to run, asked to stop, gone with the
# client. Part of steelyard.sh; what differs between kinds is in
# launcher_kinds.sh and launchers/, processors and memory are in launcher_limits.sh.
#
# Set by run.sh when the launcher is not `bare` (wrappers/launchers/launcher.py checks them):
#   SY_LAUNCHER             canonical text, docker:debian:12,cpus=2
#   SY_LAUNCHER_KIND        docker, podman, apptainer, lxc, systemd-nspawn, unshare
#   SY_LAUNCHER_IMAGE       image, container or root folder; empty for unshare
#   SY_LAUNCHER_NETWORK     host, bridge, macvlan, phys
#   SY_LAUNCHER_DEVICE      of phys, the node's device; not set: LXC's configuration names it
#   SY_LAUNCHER_CONTAINERS  clients on a node, each with a container; SY_CLIENTS is nodes times this
#   SY_LAUNCHER_ACROSS      containers of one client on each node (ranks=across); not set: it has one
#   SY_LAUNCHER_CPUS, SY_LAUNCHER_MEMORY_BYTES  of one container; not set: no limit
#   SY_LAUNCHER_LABEL       by which left containers are found again; not set: the study's folder
#   SY_LAUNCHER_FOLDER      one more folder that is to be there inside
#
# Every client has one container, in which the same run.sh is executed with SY_ROLE=inside. It reads
# from the client, a line each: `run FOLDER` (below the attempt's; `.`: the attempt itself) and
# `signal NAME`; and answers `ready`, and for every `run`: `end CODE START END UPTIME UPTIME`. So
# neither the container's start nor its end is in the measured time. When nobody holds the other
# end of its input any more, whoever was killed, the container ends.
# shellcheck disable=SC2153 # SY_CLIENTS and SY_CLIENT are two things

sy_has_launcher() {
    [[ ${SY_LAUNCHER_KIND:-bare} != bare ]]
}

# --- outside ---------------------------------------------------------------------------------

# Start the container of this client and wait until it is ready.
sy_launcher_start() {
    local begin begin_up end end_up answer took
    sy_has_launcher || return 0
    sy_read_clocks begin begin_up
    sy_launcher_set_name
    sy_launcher_sweep_leftovers
    sy_peers_start && sy_launcher_choose_processors && sy_network_make_device &&
        sy_launcher_make_command && sy_launcher_start_container && sy_device_attach_lxc || return
    sy_peers_write_list "${answer%% *}" || return
    end=${EPOCHREALTIME//[^0-9]/}
    sy_uptime_at end_up "$end"
    sy_set_elapsed "$((end - begin))" "${begin_up:--}" "${end_up:--}"
    sy_tag launcher_start_s "$(sy_format_seconds "$took")"
    sy_tag_launcher "${answer#* }"
    sy_launcher_check_limits "${answer%% *}"
}

# The container itself. Sets `answer` of the caller: its processors and its name.
sy_launcher_start_container() {
    # A write to a container that is gone must be an error, not our end.
    trap '' PIPE
    coproc SY_LAUNCHED { sy_peers_close_liveness && exec "${SY_LAUNCHER_COMMAND[@]}"; }
    SY_LAUNCHER_PID=$!
    # Only this shell holds the writing end: with it the container's input ends.
    exec {SY_LAUNCHER_IN}<&"${SY_LAUNCHED[0]}"
    sy_launcher_read_answer ready && return
    sy_log "$SY_LAUNCHER did not start${SY_SIGNAL:+ before SIG$SY_SIGNAL came}$(sy_last_message "err.$SY_CLIENT")"
    return 1
}

# A name that no other container of this node has.
sy_launcher_set_name() {
    local -a owner
    read -r -a owner <<<"$(sy_leftover_format_owner)"
    # shellcheck disable=SC2034 # for launchers/
    SY_LAUNCHER_OWNER=$$:${owner[1]} SY_LAUNCHER_NAME=steelyard-$$-${owner[1]}
}

# What runs have left that were killed with -9: root's, and in engines this user's of this study.
sy_launcher_sweep_leftovers() {
    local owner
    while IFS= read -r owner; do
        sy_log "$owner"
    done < <(sy_leftover_sweep)
    sy_kind sweep
}

# Wait for an answer, hand on signals meanwhile; sets `answer` of the caller. False: it is gone.
sy_launcher_read_answer() { # <word>
    local line='' part code deadline=$((1 << 62))
    # Only the benchmark may take as long as it likes.
    [[ $1 == end ]] || sy_set_time deadline "$((${SY_BARRIER_S:-120} * 1000000))"
    while true; do
        if [[ -n $SY_SIGNAL ]]; then
            [[ $1 != ready ]] || return 1
            sy_launcher_send "signal $SY_SIGNAL" || return
            SY_SIGNAL=
        fi
        part=''
        IFS= read -r -t 0.2 -u "$SY_LAUNCHER_IN" part
        code=$? line+=$part # a line may come in pieces
        if ((code == 0)); then
            answer=${line#"$1"} answer=${answer# }
            [[ $line != "$1" && $line != "$1 "* ]] || return 0
            line=''
        elif ((code <= 128)) || sy_is_past "$deadline"; then
            return 1
        fi
    done
}

sy_launcher_send() { # <line>
    [[ -n ${SY_LAUNCHED[1]:-} ]] && printf '%s\n' "$1" >&"${SY_LAUNCHED[1]}"
} 2>/dev/null

# One execution of sy_client in there. Sets SY_TIMES; the exit code is sy_client's.
sy_launcher_run_client() { # <folder below the attempt's>
    local answer code
    SY_TIMES=
    if ! sy_launcher_send "run $1" || ! sy_launcher_read_answer end; then
        sy_log "$SY_LAUNCHER ended before the benchmark did"
        return 1
    fi
    code=${answer%% *} SY_TIMES=${answer#* } # a signal would interrupt read
    return "$code"
}

# Without an answer the container, not the benchmark, came to an end: no times then.
sy_launcher_time_client() {
    local code
    sy_start_watchdog
    sy_launcher_run_client .
    code=$?
    sy_stop_watchdog
    trap '' TERM INT # what follows is short, and must be done
    [[ -z $SY_TIMES ]] || printf 'end %d %s\n' "$code" "$SY_TIMES" >>"$SY_STATE_FILE"
    return "$code"
}

sy_launcher_stop() {
    trap '' TERM INT
    sy_launcher_stop_container
    sy_leftover_remove_own
    sy_device_check_return
    sy_peers_stop
}

# The end of its input ends it; if that does not help, something stronger does.
sy_launcher_stop_container() {
    local fd deadline
    [[ -n ${SY_LAUNCHER_PID:-} ]] || return 0
    fd=${SY_LAUNCHED[1]:-}
    [[ -z $fd ]] || exec {fd}>&-
    sy_set_time deadline "$((${SY_GRACE_S:-10} * 1000000))"
    while kill -0 "$SY_LAUNCHER_PID" 2>/dev/null && ! sy_is_past "$deadline"; do
        sy_pause 0.02
    done
    kill -s KILL "$SY_LAUNCHER_PID" 2>/dev/null || :
    wait "$SY_LAUNCHER_PID" 2>/dev/null
    sy_kind remove
}

# --- notes -----------------------------------------------------------------------------------

# What else a reader of the run must know.
sy_tag_launcher() { # <the container's name>
    sy_tag launcher "$SY_LAUNCHER"
    sy_tag launcher_container "$1"
    sy_tag launcher_measured "$(sy_kind is_measured)"
}

# --- inside ----------------------------------------------------------------------------------

sy_container_main() {
    local word argument code fd
    SY_INSIDE_PID=
    export PATH HOME="${HOME:-/}" # LXC starts without; mpirun looks for its programs by PATH
    sy_without_scheduler
    # No scheduler's command can be started from here without a helper outside.
    [[ -n ${SY_OUTSIDE:-} ]] || export SY_SCHEDULER=local
    # What the benchmark writes must not be taken for an answer.
    exec {fd}>&1 1>&2
    trap 'sy_container_signal TERM' TERM
    trap 'sy_container_signal INT' INT
    cd -- "$SY_SCRATCH" || exit 1
    sy_container_check_single_copy
    sy_run_setup </dev/null
    printf 'ready %s %s\n' "$(sy_launcher_allowed_processors)" "$HOSTNAME" >&"$fd" || exit 1
    if [[ -n ${SY_PEER_HELPER:-} ]]; then
        sy_exec_serve "$SY_PEER_HELPER" sy_exec_run_in_container &
        SY_INSIDE_PID=$!
    fi
    while true; do
        read -r word argument
        code=$?
        ((code <= 128)) || continue # a signal came, and was handed on
        ((code == 0)) || break
        case $word in
        run)
            sy_container_run_client "$argument" "$fd" &
            SY_INSIDE_PID=$!
            ;;
        signal) sy_container_signal "$argument" ;;
        reach) sy_peers_probe "$argument" >&"$fd" ;;
        trip) printf 'trip %s\n' "$(sy_condition_measure_round_trip "$argument")" >&"$fd" ;;
        esac
    done
    sy_container_end
}

# Ranks of Open MPI read each other's memory (process_vm_readv), which a container's filter of
# system calls may refuse: docker 20.10's does, without CAP_SYS_PTRACE. Then every message costs a
# failure and a line of complaint: copied twice instead (sy_open_mpi_set_local).
sy_container_check_single_copy() {
    local -r ptrace=19 # CAP_SYS_PTRACE in linux/capability.h
    [[ $(sy_launcher_read_status Seccomp) == 2 ]] && ((!(16#$(sy_launcher_read_status CapEff) >> ptrace & 1))) || return 0
    export SY_MPI_SINGLE_COPY=none
    sy_tag launcher_mpi_single_copy none
}

sy_container_signal() { # <name>
    [[ -z $SY_INSIDE_PID ]] || sy_signal_tree "$1" "$SY_INSIDE_PID"
}

# Nobody listens any more: what still runs is asked to stop, and later made to.
sy_container_end() {
    local deadline
    sy_set_time deadline 2000000
    trap '' TERM INT
    [[ -n $SY_INSIDE_PID ]] && kill -0 "$SY_INSIDE_PID" 2>/dev/null || exit 0
    sy_signal_tree TERM "$SY_INSIDE_PID"
    while kill -0 "$SY_INSIDE_PID" 2>/dev/null && ! sy_is_past "$deadline"; do
        sy_pause 0.05
    done
    sy_signal_tree KILL "$SY_INSIDE_PID"
    exit 0
}

# One execution of sy_client, and the answer.
sy_container_run_client() { # <folder below the attempt's> <descriptor to answer to>
    [[ $1 == . ]] || SY_ATTEMPT_DIR=$SY_ATTEMPT_DIR/$1
    exec >>"$SY_ATTEMPT_DIR/out.$SY_CLIENT" 2>>"$SY_ATTEMPT_DIR/err.$SY_CLIENT" || exit 1
    sy_run_client_timed "$2"
}
