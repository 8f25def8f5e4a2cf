#!/bin/bash
# Writes result.json: exit codes, times, state and reason of a run. Part of steelyard.sh.
#
# The file exists from the run's begin, with state `started`, and is replaced as a whole at the end: a
# reader never sees a part of it. Times are from the common start of the clients to the last end, by the
# wall clock, or by the time since boot where the wall clock was set meanwhile. A run with several tries has
# the earlier ones in `tries`. Every null has its reason in `missing`.
#
# A SIGTERM at the time limit is a time-out, before it a failure. The reason is one sentence: the first
# client that failed, with the last message of its output. Nothing here judges the output: the parser does
# that.
# shellcheck disable=SC2153 # SY_CLIENTS and SY_CLIENT are two things

# --- JSON ------------------------------------------------------------------------------------

# Print text as a JSON string, quotes included. Bytes that are no UTF-8 become '?'.
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

# --- result.json -----------------------------------------------------------------------------

sy_reset_result() {
    SY_BEGUN_US=${EPOCHREALTIME//[^0-9]/}
    SY_START_US=$SY_BEGUN_US SY_END_US='' SY_ELAPSED_US='' SY_CODES=() SY_NODES=()
    SY_UNKNOWN='the run had not ended when this was written'
}

# Write result.json atomically. The arrays SY_CODES and SY_NODES have one entry per client, empty where
# not known; SY_START_US, SY_END_US, SY_ELAPSED_US may be empty. SY_UNKNOWN is the reason.
sy_write_result() { # <state> <reason, may be empty>
    local path=$SY_ATTEMPT_DIR/result.json temporary
    temporary=$SY_ATTEMPT_DIR/.result.json.$$
    if sy_print_result "$1" "$2" >"$temporary" && mv -f -- "$temporary" "$path"; then
        return 0
    fi
    rm -f -- "$temporary"
    sy_log "cannot write $path: is the file system full or read-only?"
    return 1
}

# Print the fields one by one: a $(…) for each would be twenty processes a run, slow on a virtual node.
sy_print_result() { # <state> <reason>
    printf '{"format":"steelyard-run","version":1' &&
        sy_json_field run_id sy_json_string "$SY_RUN_ID" &&
        sy_json_field attempt sy_json_string "$SY_ATTEMPT" &&
        sy_json_field scheduler sy_json_string "$SY_SCHEDULER" &&
        sy_json_field job_id sy_json_or_null "$SY_JOB_ID" &&
        sy_json_field start_unix_s sy_format_seconds "$SY_START_US" &&
        sy_json_field end_unix_s sy_format_seconds "$SY_END_US" &&
        sy_json_field elapsed_s sy_format_seconds "$SY_ELAPSED_US" &&
        sy_json_field clients printf '%d' "$SY_CLIENTS" &&
        sy_json_field exit_codes sy_result_codes &&
        sy_json_field state sy_json_string "$1" &&
        sy_json_field reason sy_json_or_null "$2" &&
        sy_json_field nodes sy_result_nodes &&
        sy_json_field tries sy_result_tries &&
        sy_json_field missing sy_result_missing &&
        printf '}\n' || return 1
    sync -- "$SY_ATTEMPT_DIR/.result.json.$$" 2>/dev/null || : # very old coreutils: no file
}

sy_json_field() { # <name> <function that prints its value> <argument>...
    printf ',"%s":' "$1" && "${@:2}"
}

sy_result_codes() {
    local list='' code
    for code in ${SY_CODES[@]+"${SY_CODES[@]}"}; do
        list+=,${code:-null}
    done
    printf '[%s]' "${list#,}"
}

sy_result_nodes() { # each node once, in the order of the clients
    local node
    local -A listed=()
    printf '['
    for node in ${SY_NODES[@]+"${SY_NODES[@]}"}; do
        [[ -n $node && -z ${listed[$node]:-} ]] || continue
        ((${#listed[@]} == 0)) || printf ','
        listed[$node]=yes
        sy_json_string "$node"
    done
    printf ']'
}

# Print the earlier, failed tries.
sy_result_tries() {
    local IFS=,
    printf '[%s]' "${SY_TRIES[*]-}"
}

# Print the reason of every null.
sy_result_missing() {
    local list='' i reason="\"$SY_UNKNOWN\"" known=${SY_NODES[*]-}
    [[ -n $SY_JOB_ID ]] || list+=',"job_id":"no scheduler"'
    [[ -n $SY_START_US ]] || list+=",\"start_unix_s\":$reason"
    [[ -n $SY_END_US ]] || list+=",\"end_unix_s\":$reason"
    [[ -n $SY_ELAPSED_US ]] || list+=",\"elapsed_s\":$reason"
    for i in ${SY_CODES[@]+"${!SY_CODES[@]}"}; do
        [[ -n ${SY_CODES[i]} ]] || list+=",\"exit_codes.$i\":$reason"
    done
    [[ -n ${known// /} ]] || list+=",\"nodes\":$reason"
    printf '{%s}' "${list#,}"
}

# --- exit codes, times, state ----------------------------------------------------------------

# Read exit codes, nodes and times from client.N; times are from the common start to the last end.
sy_collect_clients() {
    local i word a b c d e first='' last='' longest='' elapsed_us
    SY_UNKNOWN='the client left no end: it never started, or was killed'
    for ((i = 0; i < SY_CLIENTS; i++)); do
        SY_CODES[i]='' SY_NODES[i]=''
        while read -r word a b c d e; do
            [[ $word == ready ]] && SY_NODES[i]=$a
            [[ $word == end && -n $e ]] || continue
            SY_CODES[i]=$a
            ((${first:-$b} >= b)) && first=$b
            sy_set_elapsed "$((c - b))" "$d" "$e"
            ((${longest:-0} <= elapsed_us)) && longest=$elapsed_us
            ((${last:-$((b + elapsed_us))} <= b + elapsed_us)) && last=$((b + elapsed_us))
        done <"$SY_ATTEMPT_DIR/client.$i"
    done
    SY_START_US=${first:-$SY_START_US}
    SY_END_US=${last:-${EPOCHREALTIME//[^0-9]/}}
    SY_ELAPSED_US=$longest
}

# Set the elapsed time from the wall clock; from the time since boot where they disagree, because the
# wall clock was set meanwhile.
sy_set_elapsed() { # <wall µs> <uptime at start> <uptime at end>; sets `elapsed_us` of the caller
    local jump_us
    elapsed_us=$1
    if [[ $2 != - && $3 != - ]]; then
        jump_us=$((elapsed_us - ($3 - $2)))
        if ((${jump_us#-} > 50000 + ($3 - $2) / 1000)); then
            elapsed_us=$(($3 - $2))
            sy_log "the wall clock jumped by $jump_us us in the run: elapsed_s is from /proc/uptime"
        fi
    fi
}

# Print the first client that did not exit with 0, in one sentence; nothing, and true, when all did.
sy_client_failure_reason() {
    local i
    for ((i = 0; i < SY_CLIENTS; i++)); do
        case ${SY_CODES[i]} in
        0) ;;
        '')
            printf 'client %d left no exit code: it was killed%s' "$i" "$(sy_last_message "$SY_LAUNCH_LOG" "err.$i")"
            return 1
            ;;
        *)
            printf 'client %d on %s exited with %s%s' "$i" "${SY_NODES[i]}" "${SY_CODES[i]}" \
                "$(sy_last_message "err.$i")"
            return 1
            ;;
        esac
    done
}

# Print ': ' and the last message of the first of these files that has one, at most 300 bytes of it. Lines
# of dashes are mpirun's frame around a message.
sy_last_message() { # <file in the attempt folder, or nothing>...
    local file line message=''
    for file in "$@"; do
        [[ -n $file && -s $SY_ATTEMPT_DIR/$file ]] || continue
        while IFS= read -r line || [[ -n $line ]]; do
            [[ -z ${line//[-[:space:]]/} ]] || sy_scheduler is_noise "$line" || message=$line
        done <<<"$(tail -c 4096 -- "$SY_ATTEMPT_DIR/$file" | tr -d '\0')"
        [[ -z $message ]] || break
    done
    [[ -z $message ]] || printf ': %s' "${message:0:300}"
}

# Print the state of a stopped run: SIGTERM at the time limit is a time-out, before it a failure.
sy_stopped_state() {
    local now end
    now=$((${EPOCHREALTIME//[^0-9]/} / 1000000))
    end=$(sy_scheduler end_unix_s)
    if [[ -z $end && ${SY_TIME_LIMIT_S:-} =~ ^[0-9]+$ ]]; then
        end=$((SY_BEGUN_US / 1000000 + SY_TIME_LIMIT_S))
    fi
    # The job began some seconds before this script did.
    if [[ $SY_SIGNAL == TERM ]] && { [[ -n $end ]] && ((now >= end - 5)) || sy_scheduler is_time_limit_reached; }; then
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
