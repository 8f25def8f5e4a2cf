#!/bin/bash
# The shell functions of every run. A run's script (runs/RUN_ID/run.sh, made by
# jobscripts/runscript.py) is one self-contained file: it sets the variables below, sources this
# file, defines `sy_client` (the benchmark's job.sh) and ends with `sy_main`.
#
# Set by run.sh:
#   SY_STUDY_DIR  the study's folder, on a file system that all nodes see
#   SY_RUN_ID     the run
#   SY_CLIENTS    how many clients run the benchmark side by side
#   SY_PARAM_*    the benchmark's parameters, names in capitals; sizes in bytes, bools true/false
# May be set by whoever starts run.sh:
#   SY_SCHEDULER      slurm or local; default: slurm inside a Slurm job, else local
#   SY_ATTEMPT        name of the attempt folder; default: see sy_attempt_name
#   SY_TIME_LIMIT_S   seconds the run may take: tells a time-out from another SIGTERM
#   SY_SCRATCH_BASE   where scratch folders are made; default: $TMPDIR, else /tmp
#   SY_BARRIER_S      how long clients may take to start, default 120 s
#   SY_GRACE_S        how long clients may take to stop after SIGTERM, default 10 s
# What sy_client may use:
#   SY_CLIENT (0, 1, …), SY_CLIENTS, SY_ATTEMPT_DIR, SY_SCRATCH (fresh, its working directory,
#   removed afterwards); its stdout and stderr are out.CLIENT and err.CLIENT
#
# Exit code of run.sh: 0 completed, 1 failed, 143 stopped by SIGTERM (130 by SIGINT).
# What the clients tell each other lies in ATTEMPT/client.N and ATTEMPT/go. Both are made
# beforehand and written in place: on NFS only opening a file that is known asks the server anew.

# shellcheck disable=SC2153 # SY_CLIENTS and SY_CLIENT are two things
set -u
# Numbers need points and bytes must be bytes, whatever the user's locale.
export LC_ALL=C

SY_SIGNAL=
SY_PIDS=()

sy_say() { # <message>
    printf 'steelyard: %s\n' "$1" >&2
}

# Sleeping without a process of its own: reading from a pipe that nobody writes to.
sy_pause() { # <seconds>
    [[ -n ${SY_PAUSE_FD:-} ]] || exec {SY_PAUSE_FD}<> <(:)
    read -r -t "$1" -u "$SY_PAUSE_FD" || :
}

# --- JSON ------------------------------------------------------------------------------------

# Text as a JSON string, quotes included. Bytes that are no UTF-8 become '?'.
sy_json_string() { # <text>
    local text=$1 out='' char code i
    if [[ $text == *[$'\x80'-$'\xff']* ]] &&
        ! printf '%s' "$text" | iconv -f UTF-8 -t UTF-8 >/dev/null 2>&1; then
        text=${text//[$'\x80'-$'\xff']/?}
    fi
    text=${text//\\/\\\\}
    text=${text//\"/\\\"}
    if [[ $text == *[[:cntrl:]]* ]]; then
        for ((i = 0; i < ${#text}; i++)); do
            char=${text:i:1}
            if [[ $char == [[:cntrl:]] ]]; then
                printf -v code '%d' "'$char"
                printf -v char '\\u%04x' "$code"
            fi
            out+=$char
        done
        text=$out
    fi
    printf '"%s"' "$text"
}

sy_json_or_null() { # <text, empty for null>
    if [[ -n $1 ]]; then
        sy_json_string "$1"
    else
        printf 'null'
    fi
}

# --- times, in microseconds ------------------------------------------------------------------

sy_now_us() {
    printf '%s' "${EPOCHREALTIME//[^0-9]/}"
}

# Time since boot: does not jump when the wall clock is set; 10 ms fine. Empty where unknown.
sy_uptime_us() {
    local up=''
    { read -r up _ </proc/uptime; } 2>/dev/null || :
    up=${up%% *}
    [[ $up == *.* ]] && printf '%s0000' "${up/./}"
}

sy_seconds() { # <microseconds, empty for null>
    if [[ -n $1 ]]; then
        printf '%d.%06d' "$(($1 / 1000000))" "$(($1 % 1000000))"
    else
        printf 'null'
    fi
}

# --- result.json -----------------------------------------------------------------------------

# Written whole or not at all. The arrays SY_CODES and SY_NODES hold one entry per client, empty
# where not known; SY_START_US, SY_END_US, SY_ELAPSED_US may be empty, SY_UNKNOWN says why.
sy_write_result() { # <state> <reason, may be empty>
    local path=$SY_ATTEMPT_DIR/result.json temporary
    temporary=$SY_ATTEMPT_DIR/.result.json.$$
    if sy_result "$1" "$2" >"$temporary" && mv -f -- "$temporary" "$path"; then
        return 0
    fi
    rm -f -- "$temporary"
    sy_say "cannot write $path: is the file system full or read-only?"
    return 1
}

sy_result() { # <state> <reason>
    printf '{"format":"steelyard-run","version":1,"run_id":%s,"attempt":%s,"scheduler":%s' \
        "$(sy_json_string "$SY_RUN_ID")" "$(sy_json_string "$SY_ATTEMPT")" \
        "$(sy_json_string "$SY_SCHEDULER")" || return 1
    printf ',"job_id":%s,"start_unix_s":%s,"end_unix_s":%s,"elapsed_s":%s,"clients":%d' \
        "$(sy_json_or_null "$SY_JOB_ID")" "$(sy_seconds "$SY_START_US")" \
        "$(sy_seconds "$SY_END_US")" "$(sy_seconds "$SY_ELAPSED_US")" "$SY_CLIENTS" || return 1
    printf ',"exit_codes":[%s],"state":%s,"reason":%s,"nodes":[%s],"missing":{%s}}\n' \
        "$(sy_result_codes)" "$(sy_json_string "$1")" "$(sy_json_or_null "$2")" \
        "$(sy_result_nodes)" "$(sy_result_missing)" || return 1
    sync -- "$SY_ATTEMPT_DIR/.result.json.$$" 2>/dev/null || : # very old coreutils: no file
}

sy_result_codes() {
    local list='' code
    for code in ${SY_CODES[@]+"${SY_CODES[@]}"}; do
        list+=,${code:-null}
    done
    printf '%s' "${list#,}"
}

sy_result_nodes() { # each node once, in the order of the clients
    local list='' node item
    for node in ${SY_NODES[@]+"${SY_NODES[@]}"}; do
        item=$(sy_json_string "$node")
        [[ -z $node || ",$list," == *",$item,"* ]] || list+=${list:+,}$item
    done
    printf '%s' "$list"
}

# Every null has its reason.
sy_result_missing() {
    local list='' i why nodes=${SY_NODES[*]-}
    why=$(sy_json_string "$SY_UNKNOWN")
    [[ -n $SY_JOB_ID ]] || list+=',"job_id":"no scheduler"'
    [[ -n $SY_START_US ]] || list+=",\"start_unix_s\":$why"
    [[ -n $SY_END_US ]] || list+=",\"end_unix_s\":$why"
    [[ -n $SY_ELAPSED_US ]] || list+=",\"elapsed_s\":$why"
    for i in ${SY_CODES[@]+"${!SY_CODES[@]}"}; do
        [[ -n ${SY_CODES[i]} ]] || list+=",\"exit_codes.$i\":$why"
    done
    [[ -n ${nodes// /} ]] || list+=",\"nodes\":$why"
    printf '%s' "${list#,}"
}

# --- the attempt -----------------------------------------------------------------------------

# Slurm: raw job id and restart count. Local: the first local.N that is not there yet.
sy_attempt_name() {
    local n=1 runs=$SY_STUDY_DIR/runs/$SY_RUN_ID
    if [[ $SY_SCHEDULER == slurm ]]; then
        printf '%s.%s' "$SLURM_JOB_ID" "${SLURM_RESTART_COUNT:-0}"
    else
        until mkdir -- "$runs/local.$n" 2>/dev/null || [[ ! -d $runs/local.$n ]]; do
            n=$((n + 1))
        done
        printf 'local.%d' "$n"
    fi
}

sy_prepare() {
    local i
    SY_SCHEDULER=${SY_SCHEDULER:-${SLURM_JOB_ID:+slurm}}
    SY_SCHEDULER=${SY_SCHEDULER:-local}
    SY_JOB_ID=
    [[ $SY_SCHEDULER == slurm ]] && SY_JOB_ID=${SLURM_JOB_ID:?SY_SCHEDULER is slurm, but this is no Slurm job}
    SY_ATTEMPT=${SY_ATTEMPT:-$(sy_attempt_name)}
    SY_ATTEMPT_DIR=$SY_STUDY_DIR/runs/$SY_RUN_ID/$SY_ATTEMPT
    SY_START_US=$(sy_now_us) SY_END_US='' SY_ELAPSED_US='' SY_CODES=() SY_NODES=()
    SY_BEGUN_US=$SY_START_US
    SY_UNKNOWN='the run had not ended when this was written'
    mkdir -p -- "$SY_ATTEMPT_DIR" || {
        sy_say "cannot make the folder $SY_ATTEMPT_DIR"
        return 1
    }
    sy_write_result started '' || return 1
    : >"$SY_ATTEMPT_DIR/go" || return 1
    for ((i = 0; i < SY_CLIENTS; i++)); do
        : >"$SY_ATTEMPT_DIR/client.$i" || return 1
    done
    export SY_SCHEDULER SY_ATTEMPT SY_ATTEMPT_DIR
}

# --- main: starts the clients and waits for them ---------------------------------------------

sy_main() {
    case ${SY_ROLE:-main} in
    client) sy_client_main ;;
    *) sy_run ;;
    esac
}

sy_run() {
    local reason='' state=completed
    trap 'SY_SIGNAL=TERM' TERM
    trap 'SY_SIGNAL=INT' INT
    sy_prepare || exit 1
    sy_launch
    sy_open_barrier || reason=$SY_BARRIER_REASON
    sy_wait_clients
    sy_collect_clients
    if [[ -n $SY_SIGNAL ]]; then
        state=$(sy_stopped_state)
        reason=$(sy_stopped_reason "$state")
    elif [[ -n $reason ]] || ! reason=$(sy_clients_reason); then
        state=failed
    fi
    sy_write_result "$state" "$reason" || exit 1
    [[ $state == completed ]] && exit 0
    sy_say "$SY_RUN_ID: $state: $reason"
    case $SY_SIGNAL in
    TERM) exit 143 ;;
    INT) exit 130 ;;
    esac
    exit 1
}

# One task per node in one step, or background processes here.
sy_launch() {
    local script=$SY_STUDY_DIR/runs/$SY_RUN_ID/run.sh i
    if [[ $SY_SCHEDULER == slurm ]]; then
        # --overlap: never wait for other steps of the job. --wait=0 and --kill-on-bad-exit=0: one
        # client's end is not the others'. --cpu-bind=none: a client may use its whole allocation.
        SY_ROLE=client srun --nodes="$SY_CLIENTS" --ntasks="$SY_CLIENTS" --ntasks-per-node=1 \
            --overlap --export=ALL --input=none --cpu-bind=none --wait=0 --kill-on-bad-exit=0 \
            --job-name="$SY_RUN_ID" "$BASH" "$script" \
            >"$SY_ATTEMPT_DIR/srun.out" 2>"$SY_ATTEMPT_DIR/srun.err" </dev/null &
        SY_PIDS=($!)
        return
    fi
    for ((i = 0; i < SY_CLIENTS; i++)); do
        SY_ROLE=client SY_CLIENT=$i "$BASH" "$script" </dev/null &
        SY_PIDS+=($!)
    done
}

sy_any_alive() {
    local pid
    for pid in "${SY_PIDS[@]}"; do
        kill -0 "$pid" 2>/dev/null && return 0
    done
    return 1
}

# The clients start together: when all of them have said that they are ready.
sy_open_barrier() {
    local i=0 deadline word
    deadline=$(($(sy_now_us) + ${SY_BARRIER_S:-120} * 1000000))
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
        elif ! sy_any_alive; then
            SY_BARRIER_REASON="client $i never started$(sy_last_words srun.err "err.$i")"
            break
        elif (($(sy_now_us) > deadline)); then
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

# A trapped signal ends `wait` early: then everything below us is asked to stop, and later made to.
sy_wait_clients() {
    local pid
    for pid in "${SY_PIDS[@]}"; do
        while [[ -z $SY_SIGNAL ]] && kill -0 "$pid" 2>/dev/null; do
            wait "$pid"
        done
    done
    [[ -z $SY_SIGNAL ]] || sy_stop_below
}

sy_stop_below() {
    local deadline
    deadline=$(($(sy_now_us) + ${SY_GRACE_S:-10} * 1000000))
    sy_ask_to_stop
    while sy_any_alive && (($(sy_now_us) < deadline)); do
        sy_pause 0.05
    done
    ! sy_any_alive || sy_signal_below KILL "${SY_PIDS[@]}"
    wait
}

# srun's own answer to SIGTERM is to kill the step at once: the clients could not tidy up.
sy_ask_to_stop() {
    local step=-
    if [[ $SY_SCHEDULER == slurm ]]; then
        read -r _ _ step <"$SY_ATTEMPT_DIR/client.0" || :
        [[ $step =~ ^[0-9]+$ ]] && scancel --signal=TERM "$SLURM_JOB_ID.$step" && return
    fi
    sy_signal_below TERM "${SY_PIDS[@]}"
}

# A signal for processes and all their descendants, who are listed before any of them can die.
sy_signal_below() { # <signal> <pid>...
    local signal=$1 pid parent i
    local -a family pids=() parents=()
    shift
    family=("$@")
    while read -r pid parent; do
        pids+=("$pid") parents+=("$parent")
    done < <(ps -A -o pid= -o ppid= 2>/dev/null)
    local -A seen=()
    for ((i = 0; i < ${#family[@]}; i++)); do
        seen[${family[i]}]=1
        for pid in "${!pids[@]}"; do
            [[ ${parents[pid]} == "${family[i]}" && -z ${seen[${pids[pid]}]:-} ]] &&
                family+=("${pids[pid]}")
        done
    done
    kill -s "$signal" -- "${family[@]}" 2>/dev/null || :
}

# From client.N: exit code, node, and the times between the common start and the client's end.
sy_collect_clients() {
    local i word a b c d e first='' last='' longest=''
    SY_UNKNOWN='the client left no end: it never started, or was killed'
    for ((i = 0; i < SY_CLIENTS; i++)); do
        SY_CODES[i]='' SY_NODES[i]=''
        while read -r word a b c d e; do
            [[ $word == ready ]] && SY_NODES[i]=$a
            [[ $word == end && -n $e ]] || continue
            SY_CODES[i]=$a
            ((${first:-$b} >= b)) && first=$b
            ((${last:-$c} <= c)) && last=$c
            sy_longest "$((c - b))" "$d" "$e"
        done <"$SY_ATTEMPT_DIR/client.$i"
    done
    SY_START_US=${first:-$SY_START_US}
    SY_END_US=${last:-$(sy_now_us)}
    SY_ELAPSED_US=$longest
}

# Wall clock against time since boot: when they disagree the wall clock was set meanwhile.
sy_longest() { # <wall µs> <uptime at start> <uptime at end>; changes `longest` of the caller
    local wall=$1 off
    if [[ $2 != - && $3 != - ]]; then
        off=$((wall - ($3 - $2)))
        if ((${off#-} > 50000 + wall / 1000)); then
            wall=$(($3 - $2))
            sy_say "the wall clock jumped by $off us in the run: elapsed_s is from /proc/uptime"
        fi
    fi
    ((${longest:-0} <= wall)) && longest=$wall
}

# The first client that did not end with 0, in one sentence; nothing, and true, when all did.
sy_clients_reason() {
    local i
    for ((i = 0; i < SY_CLIENTS; i++)); do
        case ${SY_CODES[i]} in
        0) ;;
        '')
            printf 'client %d left no exit code: it was killed%s' "$i" "$(sy_last_words srun.err "err.$i")"
            return 1
            ;;
        *)
            printf 'client %d on %s exited with %s%s' "$i" "${SY_NODES[i]}" "${SY_CODES[i]}" \
                "$(sy_last_words "err.$i")"
            return 1
            ;;
        esac
    done
}

# ': ' and the last line of the first of these files that has one, at most 300 bytes of it.
sy_last_words() { # <file in the attempt folder>...
    local file line words=''
    for file in "$@"; do
        [[ -s $SY_ATTEMPT_DIR/$file ]] || continue
        while IFS= read -r line || [[ -n $line ]]; do
            [[ -z ${line//[[:space:]]/} ]] || words=$line
        done < <(tail -c 4096 -- "$SY_ATTEMPT_DIR/$file" | tr -d '\0')
        [[ -z $words ]] || break
    done
    [[ -z $words ]] || printf ': %s' "${words:0:300}"
}

# SIGTERM at the end of the time limit is a time-out; before, somebody stopped the run.
sy_stopped_state() {
    local now end=''
    now=$(($(sy_now_us) / 1000000))
    if [[ $SY_SCHEDULER == slurm && ${SLURM_JOB_END_TIME:-} =~ ^[0-9]+$ ]]; then
        end=$SLURM_JOB_END_TIME
    elif [[ ${SY_TIME_LIMIT_S:-} =~ ^[0-9]+$ ]]; then
        end=$((SY_BEGUN_US / 1000000 + SY_TIME_LIMIT_S))
    fi
    # The job began some seconds before this script, and the grace is over when this is asked.
    if [[ $SY_SIGNAL == TERM && -n $end ]] && ((now >= end - 5)); then
        printf 'timeout'
    else
        printf 'failed'
    fi
}

sy_stopped_reason() { # <state>
    if [[ $1 == timeout ]]; then
        printf 'stopped at its time limit'
    else
        printf 'stopped by SIG%s before its end' "$SY_SIGNAL"
    fi
}

# --- a client --------------------------------------------------------------------------------

sy_client_main() {
    local code
    SY_CLIENT=${SY_CLIENT:-${SLURM_PROCID:-0}}
    SY_STATE_FILE=$SY_ATTEMPT_DIR/client.$SY_CLIENT
    export SY_CLIENT
    exec >"$SY_ATTEMPT_DIR/out.$SY_CLIENT" 2>"$SY_ATTEMPT_DIR/err.$SY_CLIENT" || exit 1
    trap 'SY_SIGNAL=TERM' TERM
    trap 'SY_SIGNAL=INT' INT
    trap 'sy_remove_scratch' EXIT
    sy_make_scratch || exit 1
    printf 'ready %s %s\n' "${SLURMD_NODENAME:-$HOSTNAME}" "${SLURM_STEP_ID:--}" >>"$SY_STATE_FILE" || exit 1
    sy_wait_for_go || exit 1
    sy_timed_client
    code=$?
    exit "$code"
}

sy_make_scratch() {
    local base=${SY_SCRATCH_BASE:-${TMPDIR:-/tmp}}
    SY_SCRATCH=$(mktemp -d -- "$base/steelyard.$SY_RUN_ID.$SY_CLIENT.XXXXXXXX") || {
        sy_say "cannot make a scratch folder in $base"
        return 1
    }
    export SY_SCRATCH
    cd -- "$SY_SCRATCH" || return 1
}

# Only ever the folder that sy_make_scratch made.
sy_remove_scratch() {
    [[ ${SY_SCRATCH:-} == */steelyard."$SY_RUN_ID"."$SY_CLIENT".* ]] || return 0
    cd / && rm -rf --one-file-system -- "$SY_SCRATCH"
}

sy_wait_for_go() {
    local word='' deadline
    # Longer than main waits: main decides.
    deadline=$(($(sy_now_us) + (${SY_BARRIER_S:-120} + 60) * 1000000))
    while [[ -z $SY_SIGNAL ]]; do
        read -r word <"$SY_ATTEMPT_DIR/go" || :
        [[ $word == go ]] && return 0
        if [[ $word == stop ]] || (($(sy_now_us) > deadline)); then
            sy_say 'not started: the other clients did not get ready'
            return 1
        fi
        sy_pause 0.01
    done
    return 1
}

# The benchmark in a child, so that a signal is handled at once and its end still written.
sy_timed_client() {
    local code start end start_up end_up
    start_up=$(sy_uptime_us)
    start=${EPOCHREALTIME//[^0-9]/}
    (
        # Only once the program in the foreground has stopped and tidied up.
        trap 'exit 143' TERM
        trap 'exit 130' INT
        trap - EXIT
        sy_client
    ) &
    local pid=$!
    wait "$pid"
    code=$?
    while [[ -n $SY_SIGNAL ]] && kill -0 "$pid" 2>/dev/null; do
        sy_signal_below "$SY_SIGNAL" "$pid"
        SY_SIGNAL=
        wait "$pid"
        code=$?
    done
    end=${EPOCHREALTIME//[^0-9]/}
    end_up=$(sy_uptime_us)
    printf 'end %d %s %s %s %s\n' "$code" "$start" "$end" "${start_up:--}" "${end_up:--}" \
        >>"$SY_STATE_FILE"
    return "$code"
}

# For benchmarks that bring their own launcher (mpirun): it must not see the scheduler's job.
sy_without_scheduler() {
    local name
    for name in "${!SLURM_@}" "${!PMI_@}" "${!PMIX_@}" "${!PMI2_@}" "${!OMPI_@}" "${!PRTE_@}" \
        "${!PBS_@}"; do
        unset "$name"
    done
}

# The first of: the named program's own variable, PATH. Prints its path or says what is missing.
sy_program() { # <program> <path from a variable, may be empty> <what to do>
    local path=$2
    if [[ -n $path ]]; then
        [[ -f $path && -x $path ]] && printf '%s' "$path" && return 0
        sy_say "$path: no program that can be run"
        return 3
    fi
    path=$(type -P -- "$1") && printf '%s' "$path" && return 0
    sy_say "$1 is missing on $HOSTNAME: $3"
    return 3
}
