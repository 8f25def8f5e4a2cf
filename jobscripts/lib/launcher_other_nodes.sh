#!/bin/bash
# A container whose benchmark has several nodes: what it starts on another one (sy_on_node: MPI's
# daemons, servers, clients) is started in a container of the same launcher there. Part of
# steelyard.sh.
#
# Inside, the scheduler's commands are asked for at a door: SY_FAR_DOOR, a folder on the first node's disk
# that is the same inside and outside. Behind it the client, which is outside, executes them. A
# request is a folder with `argv` and four FIFOs: out, err, code, and `alive`, which the one who
# asks holds open: when it is gone, what was asked for is stopped. `taken` appears in it when somebody
# is behind the door. Whoever opens a FIFO waits for the other end, for ever if that was killed: so
# each is opened for both directions first. On the other node run.sh is executed with SY_ROLE=far and
# the name of a file beside the attempt's with the command in it.
# shellcheck disable=SC2153 # SY_LAUNCHER and SY_LAUNCHED are two things

# --- outside, on the first node --------------------------------------------------------------

# Only the one client of a job with several nodes starts anything on another.
sy_far_open() {
    local -a nodes=()
    ((SY_CLIENTS == 1)) || return 0
    sy_lines nodes sy_nodes
    ((${#nodes[@]} > 1)) || return 0
    if [[ $SY_LAUNCHER_NETWORK != host && -z ${SY_LAUNCHER_PLACES:-} ]]; then
        sy_say "$SY_LAUNCHER: on ${#nodes[@]} nodes its containers would not reach each other: add ranks=across, or leave network= out"
        return 4
    fi
    # While the scheduler is still asked directly.
    SY_FAR_PREFIX=$(sy_prefix_length "$(sy_node_address "$SY_THIS_NODE")")
    SY_FAR_DOOR=$(sy_left_folder "${SY_SCRATCH%/*}" "steelyard.$SY_RUN_ID.$SY_CLIENT.door") &&
        mkfifo -m 600 "$SY_FAR_DOOR/door" || return
    export SY_FAR_DOOR SY_FAR_PREFIX
    sy_far_keep &
    SY_FAR_PID=$!
}

sy_far_keep() {
    local name fd
    trap - TERM INT EXIT
    sy_places_let_go
    exec {fd}<>"$SY_FAR_DOOR/door"
    while read -r -u "$fd" name; do
        [[ ! $name =~ ^[A-Za-z0-9]+$ ]] || sy_far_answer "$SY_FAR_DOOR/$name" {fd}<&- &
    done
}

# shellcheck disable=SC2094 # FIFOs
sy_far_answer() { # <folder of the request>
    local pid watcher code hold out err
    local -a argv=()
    mapfile -d '' -t argv <"$1/argv"
    [[ -n ${SY_PLACE_DOOR:-} ]] || sy_scheduler is_command "${argv[0]}" || argv=(false)
    exec {hold}<>"$1/out" {out}>"$1/out" {hold}<&- {hold}<>"$1/err" {err}>"$1/err" {hold}<&-
    : >"$1/taken"
    # Not on the command line, which only adds to what is there.
    sy_far_execute "${argv[@]}" \
        </dev/null >&"$out" 2>&"$err" {out}>&- {err}>&- &
    pid=$!
    exec {out}>&- {err}>&-
    (
        exec {hold}<>"$1/alive" {alive}<"$1/alive" {hold}<&-
        read -r _ <&"$alive"
        sy_signal_below TERM "$pid"
    ) &
    watcher=$!
    wait "$pid"
    code=$?
    sy_signal_below KILL "$watcher"
    exec {hold}<>"$1/code" && printf '%d\n' "$code" >&"$hold"
}

# In a container of a place whatever is asked for, behind a client's door the scheduler's commands.
sy_far_execute() { # <command> <argument>...
    if [[ -n ${SY_PLACE_DOOR:-} ]]; then
        unset SY_FAR_DOOR SY_PLACE_DOOR
        exec "$@"
    fi
    SY_ROLE=far SY_FAR_DOOR='' sy_scheduler command "$@"
}

sy_far_close() {
    [[ -n ${SY_FAR_DOOR:-} ]] || return 0
    sy_signal_below TERM "$SY_FAR_PID"
    wait "$SY_FAR_PID" 2>/dev/null
    [[ $SY_FAR_DOOR != */steelyard."$SY_RUN_ID"."$SY_CLIENT".door.* ]] || sy_left_remove_folder "$SY_FAR_DOOR"
}

# --- inside, on the first node ---------------------------------------------------------------

# A command of the scheduler's; its output, errors and exit code.
# shellcheck disable=SC2094 # FIFOs
sy_far_ask() { # <command> <argument>...
    local folder door alive out err hold_out hold_err result code=1
    folder=$(mktemp -d -- "$SY_FAR_DOOR/XXXXXXXX") &&
        mkfifo "$folder/out" "$folder/err" "$folder/alive" "$folder/code" || return
    printf '%s\0' "$@" >"$folder/argv"
    exec {hold_out}<>"$folder/out" {out}<"$folder/out" {hold_err}<>"$folder/err" {err}<"$folder/err"
    exec {alive}<>"$folder/alive" {result}<>"$folder/code" {door}<>"$SY_FAR_DOOR/door"
    printf '%s\n' "${folder##*/}" >&"$door"
    sy_far_is_taken "$folder"
    exec {hold_out}<&- {hold_err}<&- {door}<&-
    cat <&"$err" >&2 {alive}<&- &
    cat <&"$out" {alive}<&-
    wait "$!"
    [[ -e $folder/taken ]] && read -r -t "${SY_FAR_LIMIT_S:-10}" -u "$result" code || code=1
    exec {alive}<&- {out}<&- {err}<&- {result}<&-
    rm -rf -- "$folder"
    return "$code"
}

sy_far_is_taken() { # <folder of the request>
    local deadline
    sy_moment deadline "$((${SY_FAR_LIMIT_S:-10} * 1000000))"
    until [[ -e $1/taken ]]; do
        if sy_is_past "$deadline"; then
            sy_say "nobody outside of the container answers: the client there is gone"
            return 1
        fi
        sy_pause 0.01
    done
}

# As sy_on_node, for another node.
sy_far_on_node() { # <node> <command> <argument>...
    local node=$1 file code
    shift
    file=$(mktemp -- "$SY_ATTEMPT_DIR/far.XXXXXXXX") || return
    printf '%s\0' "$@" >"$file"
    (umask 077 && env -0 >"$file.env") # tokens and passwords, perhaps
    sy_scheduler on_node "$node" env "SY_FAR_FILE=${file##*/}" bash \
        "${SY_LAUNCHER_SCRIPT:-$SY_STUDY_DIR/runs/$SY_RUN_ID/run.sh}"
    code=$?
    rm -f -- "$file" "$file.env"
    return "$code"
}

# --- on another node -------------------------------------------------------------------------

# Start the container, hand on signals by its input, end with it.
sy_far_main() {
    local out again=1 code
    sy_scheduler where
    export SY_THIS_NODE SY_STEP
    # shellcheck disable=SC2317 # is called
    sy_tag() { :; } # the first node's container has them
    trap 'sy_far_told=1' TERM INT
    trap 'sy_launcher_stop; sy_remove_scratch' EXIT
    sy_make_scratch && sy_launcher_name && sy_launcher_processors &&
        export SY_LAUNCHER_CPUSET && sy_launcher_command || exit
    exec {out}>&1
    trap '' PIPE
    # shellcheck disable=SC2034 # sy_launcher_tell's
    coproc SY_LAUNCHED { exec "${SY_LAUNCHER_COMMAND[@]}" >&"$out"; }
    # shellcheck disable=SC2034 # sy_launcher_stop's
    SY_LAUNCHER_PID=$!
    local -r pid=$!
    trap 'again=1; sy_launcher_tell TERM' TERM INT
    [[ -z ${sy_far_told:-} ]] || sy_launcher_tell TERM
    sy_far_in_force "$pid" || exit
    while [[ -n $again ]]; do
        again=
        wait "$pid"
        code=$?
    done
    exit "$code"
}

# Memory, looked at from outside as soon as the container is in its cgroup (the processors: inside).
sy_far_in_force() { # <pid of what started it>
    local try limit want=${SY_LAUNCHER_MEMORY_BYTES:-}
    [[ -n $want ]] || return 0
    for ((try = 0; try < 400; try++)); do
        limit=$(sy_launcher_limit "$(sy_launcher_pid)" 2>/dev/null)
        ((${limit:-want + 1} > want)) || return 0
        kill -0 "$1" 2>/dev/null || return 0 # it tells itself why it has ended
        sy_pause 0.05
    done
    sy_say "$SY_LAUNCHER: its memory should be limited to $want bytes on $SY_THIS_NODE and is not"
    return 4
}

# The command, in there; the input brings signals, and its end is the end.
sy_far_inside() {
    local pid out end code=''
    local -a argv=() variables=()
    mapfile -d '' -t argv <"$SY_ATTEMPT_DIR/$SY_FAR_FILE"
    mapfile -d '' -t variables < <(grep -zvE '^(SY_(THIS_NODE|SCRATCH|STEP|FAR_|ROLE)|PWD=|_=|HOSTNAME=)' \
        "$SY_ATTEMPT_DIR/$SY_FAR_FILE.env")
    export "${variables[@]}"
    if [[ -n ${SY_LAUNCHER_CPUS:-} ]] && ! sy_launcher_same "$(sy_launcher_allowed)" "$SY_LAUNCHER_CPUSET"; then
        sy_say "$SY_LAUNCHER: its processors should be $SY_LAUNCHER_CPUSET on $SY_THIS_NODE and are $(sy_launcher_allowed)"
        exit 4
    fi
    unset SY_FAR_FILE SY_FAR_DOOR
    # In the foreground of a shell of its own, for the reason told at sy_timed_child.
    exec {out}>&1
    exec {end}< <(
        trap : TERM INT
        ("${argv[@]}" </dev/null >&"$out")
        printf '%d\n' "$?"
    )
    pid=$!
    sy_far_listen "$pid" <&0 &
    trap : TERM INT
    read -r -u "$end" code
    exit "${code:-1}"
}

sy_far_listen() { # <pid>
    local word
    trap '' TERM INT
    while read -r word; do
        sy_signal_below "$word" "$1"
    done
    sy_signal_below TERM "$1"
    sy_pause 2
    sy_signal_below KILL "$1"
}
