#!/bin/bash
# A command on another node of a PBS job: a task of the Task Manager (TM) where pbsdsh exists, so that
# pbs_mom is its parent and its usage is measured; else by ssh. Part of steelyard.sh.
#
# The two servers' pbsdsh agree in `-n INDEX PROGRAM ARGUMENT…` and in the effect of SIGTERM (the
# processes of the task get it), and in little else: the exit code is not returned, only the scheduler's
# variables are passed, and output goes to the job's files. So these go through a folder in the
# attempt's:
#   task.sh, argv, env  written before the task starts
#   out, err     the command's output, forwarded while it runs
#   state        `pid N` of the task's shell, then `end CODE`
#   log          output of pbsdsh
# All exist before the task starts and are re-opened for each reading: on NFS opening requests new
# contents from the server.
# shellcheck disable=SC2153 # SY_* are steelyard.sh's

# Run a command on a node and wait for its end: output, errors and exit code are the command's. The
# command is stopped by a signal to this shell, and when its output is closed. In a subshell, since it
# sets traps.
sy_pbs_run_on_node() { # <node> <command> <argument>...
    (sy_pbs_run_task "$@")
}

sy_pbs_run_task() { # <node> <command> <argument>...
    local node=$1 stop='' folder starter code from_out from_err to_out to_err
    local -a start=()
    shift
    trap '' PIPE
    trap 'stop=1' TERM INT
    folder=$(mktemp -d -- "$SY_ATTEMPT_DIR/task.XXXXXXXX") && sy_pbs_make_task_files "$@" || exit
    sy_pbs_set_start_command "$node" "$BASH" "$folder/task.sh" "$folder" "$node" || {
        rm -rf -- "$folder"
        exit 1
    }
    exec {from_out}<"$folder/out" {from_err}<"$folder/err" {to_out}>&1 {to_err}>&2
    "${start[@]}" </dev/null >"$folder/log" 2>&1 {to_out}>&- {to_err}>&- &
    starter=$!
    sy_pbs_follow_task
    code=$?
    rm -rf -- "$folder"
    exit "$code"
}

# Here and below `folder`, `node`, `stop`, `start`, `starter`, `from_*`, `to_*` are sy_pbs_run_task's.
sy_pbs_make_task_files() { # <command> <argument>...
    # shellcheck disable=SC2016 # for the shell there to expand
    { declare -f sy_pbs_task_main && printf '%s\n' 'sy_pbs_task_main "$@"'; } >"$folder/task.sh" &&
        printf '%s\0' "$@" >"$folder/argv" && env -0 >"$folder/env" &&
        : >"$folder/out" && : >"$folder/err" && : >"$folder/state"
}

# Set `start` of the caller to the command that starts a program on a node.
sy_pbs_set_start_command() { # <node> <program> <argument>...
    local entry index='' text
    for entry in $SY_PBS_NODES; do
        [[ ${entry#*:} != "$1" ]] || index=${entry%%:*}
    done
    if [[ -z $index ]]; then
        sy_log "node $1 is none of this job's: $SY_PBS_NODES"
        return 1
    elif [[ -n $SY_PBS_DSH ]]; then
        sy_pbs_add_job_variables
        start+=("$SY_PBS_DSH" -n "$index" -- "${@:2}")
    else
        printf -v text '%q ' exec "${@:2}"
        start=(ssh -o BatchMode=yes -- "$1" "$text")
    fi
}

# Forward the command's output until it has ended. Returns its exit code, or 1 or 143 when it left none.
sy_pbs_follow_task() {
    local code='' pid='' steps=0 stop_time=0 start_time last_alive=0 now
    sy_set_time start_time 0
    while true; do
        sy_pbs_read_state
        sy_pbs_forward_output "$from_out" "$folder/out" "$to_out" || stop=1
        sy_pbs_forward_output "$from_err" "$folder/err" "$to_err"
        [[ -z $code ]] || return "$code"
        sy_set_time now 0
        if [[ -n $stop ]]; then
            ((stop_time > 0)) || stop_time=$now
            sy_pbs_stop_task "$((now - stop_time))" || return 143
        elif kill -0 "$starter" 2>/dev/null; then
            last_alive=$now
        elif ((now - last_alive > 2000000)); then # on NFS the exit code may come late
            sy_log "the task on node $node left no exit code$(sy_pbs_starter_message)"
            return 1
        fi
        sy_pbs_wait_interval "$((now - start_time))"
    done
}

# Sets `pid` and `code` of the caller.
sy_pbs_read_state() {
    local word value
    while read -r word value; do
        case $word in
        pid) pid=$value ;;
        end) code=$value ;;
        esac
    done <"$folder/state"
}

# Copy new output; false: its reader has closed it.
sy_pbs_forward_output() { # <descriptor to read> <its file> <descriptor to write>
    local byte
    : <"$2"
    while IFS= read -r -d '' -n 1 -u "$1" byte; do
        if [[ -n $byte ]]; then
            printf '%s' "$byte"
        else
            printf '\0'
        fi >&"$3" && cat <&"$1" >&"$3" || return 1
    done 2>/dev/null
}

# Stop the command, step by step: SIGTERM by pbsdsh; SIGTERM to the task's session (the task may have just
# begun, and ssh forwards no signals); SIGKILL, before this shell is killed. False: all steps are done.
sy_pbs_stop_task() { # <microseconds since the first request>
    local -r grace=$((${SY_GRACE_S:-10} * 1000000))
    if ((steps == 0)); then
        kill -s TERM "$starter" 2>/dev/null
        steps=1
    elif ((steps == 1 && $1 > grace / 10)); then
        [[ -z $pid ]] || sy_pbs_signal_task TERM "$node" "$pid"
        steps=2
    elif ((steps == 2 && $1 > grace * 7 / 10)); then
        [[ -z $pid ]] || sy_pbs_signal_task KILL "$node" "$pid"
        steps=3
    fi
    ((steps < 3))
}

# Wait a twentieth of the time since the start, from 10 ms to 0.25 s.
sy_pbs_wait_interval() { # <microseconds since the start>
    local us=$(($1 / 20)) text
    ((us > 10000)) || us=10000
    ((us < 250000)) || us=250000
    printf -v text '0.%06d' "$us"
    sy_pause "$text"
}

sy_pbs_starter_message() {
    local line message=''
    while IFS= read -r line || [[ -n $line ]]; do
        [[ -z $line ]] || message=$line
    done <"$folder/log"
    printf '%s' "${message:+: $message}"
}

# Signal all processes of a task: those of its shell's session.
sy_pbs_signal_task() { # <signal> <node> <pid of the task's shell>
    local -a start=()
    # shellcheck disable=SC2016 # for the shell there to expand
    sy_pbs_set_start_command "$2" "$BASH" -c \
        "$(declare -f sy_read_process_stat sy_pbs_signal_session)"'; sy_pbs_signal_session "$@"' - "$1" "$3" || return
    timeout 5 "${start[@]}" </dev/null &>/dev/null
}

# --- on the other node; self-contained -------------------------------------------------------

# Run the command of a task. The task keeps its own variables of the scheduler, by which pbs_mom and the
# record recognize its processes.
sy_pbs_task_main() { # <folder> <node>
    local item pid again=1 code
    local -a argv=() given=() variables=()
    mapfile -d '' -t argv <"$1/argv"
    mapfile -d '' -t given <"$1/env"
    for item in "${given[@]}"; do
        case ${item%%=*} in
        PBS_* | SY_PBS_V_* | SY_PBS_TASK | SY_PBS_NODE | HOSTNAME | PWD | OLDPWD | SHLVL | _) ;;
        TMPDIR) [[ -n ${TMPDIR:-} ]] || variables+=("$item") ;;
        *) variables+=("$item") ;;
        esac
    done
    cd /tmp || exit 1
    printf 'pid %d\n' "$$" >>"$1/state" || exit 1
    # A stop signals all processes of the session, this shell too.
    trap 'again=1' TERM INT HUP
    env "${variables[@]}" SY_PBS_NODE="$2" SY_PBS_TASK="$2/$$" "${argv[@]}" \
        </dev/null >>"$1/out" 2>>"$1/err" &
    pid=$!
    while [[ -n $again ]]; do
        again=
        wait "$pid"
        code=$?
    done
    printf 'end %d\n' "$code" >>"$1/state"
}

sy_pbs_signal_session() { # <signal> <pid>
    local pid
    local -a stat=() pids=()
    for pid in /proc/[0-9]*; do
        pid=${pid#/proc/}
        # Of state, parent, group, session.
        ! sy_read_process_stat "$pid" || [[ ${stat[3]} != "$2" ]] || pids+=("$pid")
    done
    ((${#pids[@]} == 0)) || kill -s "$1" -- "${pids[@]}"
}
