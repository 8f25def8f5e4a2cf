#!/bin/bash
# Programs that a benchmark in a container starts outside of it: in another container of the same
# client, on this node or another one (MPI's daemons, servers, clients), and the scheduler's commands
# that start them there. Part of steelyard.sh.
#
# An exec helper executes commands that processes of its node request. Each container has one inside
# (launcher_peer_containers.sh): its commands have the container's namespaces, cgroup, processors,
# capabilities and seccomp filter; a process that enters from outside lacks some of them in some kinds. The
# client has one helper outside, for the scheduler's commands only. On another node a process with
# SY_ROLE=request passes the command to the helper of that node's container.
#
# A helper has a folder on the node's disk that is the same inside and outside. Its FIFO `requests`
# gets the names of requests, which are folders in it:
#   argv, env     each argument and variable ends with NUL
#   out, err      FIFOs: the command's output
#   state         a FIFO: `taken`, then the exit code
#   alive         a FIFO that the requester keeps open, a line for each signal to forward; at its end
#                 the command is stopped
# Opening a FIFO blocks until the other end is opened, for ever if that process was killed. So each is
# first opened for both directions.
# shellcheck disable=SC2153 # SY_LAUNCHER and SY_LAUNCHED are two things

# --- the helper ------------------------------------------------------------------------------

sy_exec_make_helper() { # <folder>
    mkdir -m 700 -- "$1" && mkfifo -m 600 "$1/requests"
}

sy_exec_serve() { # <folder> <function that executes a request: folder, command, arguments>
    local name fd
    trap - TERM INT EXIT
    sy_peers_close_liveness
    exec {fd}<>"$1/requests"
    while read -r -u "$fd" name; do
        [[ ! $name =~ ^[A-Za-z0-9]+$ ]] || sy_exec_run_request "$1/$name" "$2" {fd}<&- &
    done
}

# shellcheck disable=SC2094 # FIFOs
sy_exec_run_request() { # <folder of the request> <function>
    local pid watcher code hold out err state
    local -a argv=()
    mapfile -d '' -t argv <"$1/argv"
    exec {hold}<>"$1/out" {out}>"$1/out" {hold}<&- {hold}<>"$1/err" {err}>"$1/err" {hold}<&-
    exec {state}<>"$1/state" && printf 'taken\n' >&"$state"
    "$2" "$1" "${argv[@]}" </dev/null >&"$out" 2>&"$err" {out}>&- {err}>&- &
    pid=$!
    exec {out}>&- {err}>&-
    sy_exec_forward_signals "$1/alive" "$pid" &
    watcher=$!
    wait "$pid"
    code=$?
    sy_signal_tree KILL "$watcher"
    printf '%d\n' "$code" >&"$state"
}

# Forward signals to the command; at the end of the FIFO stop it.
# shellcheck disable=SC2094 # a FIFO
sy_exec_forward_signals() { # <FIFO> <pid>
    local word hold alive
    exec {hold}<>"$1" {alive}<"$1" {hold}<&-
    while read -r word <&"$alive"; do
        sy_signal_tree "$word" "$2"
    done
    sy_signal_tree TERM "$2"
    sy_pause 2
    sy_signal_tree KILL "$2"
}

# Run a request of the helper outside: one of the scheduler's commands.
sy_exec_run_scheduler() { # <folder of the request> <command> <argument>...
    sy_scheduler is_command "$2" && SY_OUTSIDE='' sy_scheduler command "${@:2}"
}

# Run a request of a container's helper: any command, with the requester's environment except for the
# variables that belong to this container.
sy_exec_run_in_container() { # <folder of the request> <command> <argument>...
    local variable
    local -a given=() variables=()
    mapfile -d '' -t given <"$1/env"
    for variable in "${given[@]}"; do
        case ${variable%%=*} in
        SY_SCRATCH | SY_ROLE | SY_OUTSIDE | SY_PEERS | SY_LAUNCHER_CPUSET | SY_MPI_SINGLE_COPY) ;;
        PWD | OLDPWD | SHLVL | _ | HOSTNAME) ;;
        *) variables+=("$variable") ;;
        esac
    done
    unset SY_OUTSIDE SY_PEERS
    exec env "${variables[@]}" "${@:2}"
}

# --- the requester ---------------------------------------------------------------------------

# Have a helper run a command. Output, errors and exit code are the command's.
sy_exec_request() { # <helper's folder> <command> <argument>...
    local folder
    folder=$(mktemp -d -- "$1/XXXXXXXX") && sy_exec_write_request "$folder" "${@:2}" && sy_exec_send_request "$folder"
}

# Write argv and env of a request. Only the user can read env: it may contain tokens and passwords.
sy_exec_write_request() { # <folder> <command> <argument>...
    printf '%s\0' "${@:2}" >"$1/argv" && (umask 077 && env -0 >"$1/env")
}

# Send a request, and copy the command's output until it has ended.
# shellcheck disable=SC2094 # FIFOs
sy_exec_send_request() { # <folder of the request>
    local requests alive state out err hold_out hold_err pid code
    local -a pids=()
    mkfifo "$1/out" "$1/err" "$1/alive" "$1/state" || return
    exec {hold_out}<>"$1/out" {out}<"$1/out" {hold_err}<>"$1/err" {err}<"$1/err"
    exec {alive}<>"$1/alive" {state}<>"$1/state" {requests}<>"${1%/*}/requests"
    printf '%s\n' "${1##*/}" >&"$requests"
    if ! sy_exec_read_state; then
        sy_log "no exec helper answers in ${1%/*}: the client, or the container there, has ended"
    else
        exec {hold_out}<&- {hold_err}<&-
        [[ -z ${SY_SIGNAL:-} ]] || printf '%s\n' "$SY_SIGNAL" >&"$alive"
        # The last output comes after a signal that all processes of a step get.
        (trap '' TERM INT && exec cat <&"$err" >&2 {alive}<&-) &
        pids=($!)
        (trap '' TERM INT && exec cat <&"$out" {alive}<&-) &
        pids+=($!)
        for pid in "${pids[@]}"; do
            while kill -0 "$pid" 2>/dev/null; do
                wait "$pid"
            done
        done
        sy_exec_read_state
    fi
    exec {requests}<&- {hold_out}<&- {hold_err}<&- {alive}<&- {out}<&- {err}<&- {state}<&-
    rm -rf -- "$1"
    return "$code"
}

# Read a line of `state` into `code` of the caller, 1 when no line comes. A signal may interrupt it.
sy_exec_read_state() {
    local deadline
    local -r limit_s=${SY_EXEC_LIMIT_S:-10}
    sy_set_time deadline "$((limit_s * 1000000))"
    until read -r -t "$limit_s" -u "$state" code; do
        code=1
        ! sy_is_past "$deadline" || return
    done
}

# Run a command in another container of this client, or in this one.
sy_exec_run_in_peer() { # <container's name> <command> <argument>...
    local name node helper folder code
    while read -r name node _ helper; do
        [[ $name != "$1" ]] || break
    done <"$SY_PEERS/list"
    if [[ $name != "$1" ]]; then
        sy_log "no container of this program is called $1"
        return 1
    elif [[ $helper == - ]]; then
        "${@:2}"
        return
    elif [[ $node == "$SY_THIS_NODE" ]]; then
        sy_exec_request "$helper" "${@:2}"
        return
    fi
    folder=$(mktemp -d -- "$SY_ATTEMPT_DIR/request.XXXXXXXX") && sy_exec_write_request "$folder" "${@:2}" || return
    sy_scheduler on_node "$node" env SY_ROLE=request "SY_REQUEST=$folder" "SY_HELPER=$helper" \
        bash "${SY_LAUNCHER_SCRIPT:-$SY_STUDY_DIR/runs/$SY_RUN_ID/run.sh}"
    code=$?
    rm -rf -- "$folder"
    return "$code"
}

# SY_ROLE=request: on another node, outside of its containers. The command gets the scheduler's variables
# of this process, so that other processes can stop it by this step.
sy_request_main() {
    local folder name alive=''
    trap 'sy_request_forward_signal' TERM INT
    sy_scheduler set_client
    export SY_THIS_NODE SY_STEP
    folder=$(mktemp -d -- "$SY_HELPER/XXXXXXXX") &&
        cp -- "$SY_REQUEST/argv" "$SY_REQUEST/env" "$folder" || exit
    rm -rf -- "$SY_REQUEST"
    for name in SY_THIS_NODE SY_STEP $(compgen -e "SY_${SY_SCHEDULER^^}_"); do
        printf '%s=%s\0' "$name" "${!name}"
    done >>"$folder/env"
    sy_exec_send_request "$folder"
}

# Forward a signal to the command; `alive` is sy_exec_send_request's.
sy_request_forward_signal() {
    if [[ -n ${alive:-} ]]; then
        printf 'TERM\n' >&"$alive"
    else
        SY_SIGNAL=TERM
    fi
}
