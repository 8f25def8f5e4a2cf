#!/bin/bash
# Whether a condition's loss and rate hold between containers: datagrams from inside, and what the
# node's own queue counts of them. Part of steelyard.sh; called by launcher_condition.sh.
#
# Steelyard's queues are children of 57e1:, on the device that leads out of the node
# (plugins/node/netem/kernel/plan.h). One tc reads them all the time: where processes are slow to
# start, as in some virtual nodes, a new one a time would take longer than what it looks at. It
# writes into a file, for bash reads a pipe byte by byte.
# shellcheck disable=SC2034,SC2154 # `spec`, `verified`, `open`, `none` are sy_condition_look's

SY_COUNTS_ROOT=57e1:

# --- the queue -------------------------------------------------------------------------------

# The device that has one and leads to the other nodes, or else any. False: there is none.
sy_counts_open() { # <address of another node>
    local line device='' best='' route
    local -a words
    route=$(ip -oneline route get "$1") route=${route#* dev }
    while read -r line; do
        read -r -a words <<<"$line"
        [[ ${words[0]} == qdisc ]] && device=${words[4]}
        [[ $line == *" parent $SY_COUNTS_ROOT"* ]] || continue
        [[ -n $best && $device != "${route%% *}" ]] || best=$device
    done < <(tc qdisc show)
    [[ -n $best ]] || return
    SY_COUNTS_DEVICE=$best SY_COUNTS_LINES=0
    exec {SY_COUNTS_IN}> >(sy_places_let_go && exec tc -statistics -batch - >"$SY_PLACES/counts" 2>/dev/null)
    until [[ -e $SY_PLACES/counts ]]; do
        sy_pause 0.01
    done
    exec {SY_COUNTS_OUT}<"$SY_PLACES/counts"
    SY_COUNTS_LINES=$(tc -statistics qdisc show dev "$best" | wc -l)
}

sy_counts_close() {
    [[ -n ${SY_COUNTS_IN:-} ]] || return 0
    exec {SY_COUNTS_IN}>&- {SY_COUNTS_OUT}<&-
    SY_COUNTS_IN=''
}

# Sets `counts` of the caller: for each queue BYTES PACKETS DROPPED WAITING-BYTES WAITING; and
# `asked` and `told`, µs, between which it was so. False: tc does not answer, or the queue is gone.
sy_counts_read() {
    local try
    local -a lines=() got
    asked=${EPOCHREALTIME//[^0-9]/}
    printf 'qdisc show dev %s\n' "$SY_COUNTS_DEVICE" >&"$SY_COUNTS_IN" || return
    for ((try = 0; try < 2000; try++)); do
        mapfile -t -u "$SY_COUNTS_OUT" got
        lines+=(${got[@]+"${got[@]}"})
        ((${#lines[@]} < SY_COUNTS_LINES)) || break
        sy_pause 0.001
    done
    told=${EPOCHREALTIME//[^0-9]/}
    sy_counts_of "${lines[@]}"
} 2>/dev/null

sy_counts_of() { # <line of tc>...; sets `counts`
    local line queue=''
    counts=()
    for line; do
        if [[ $line == qdisc* ]]; then
            queue=''
            [[ ! $line =~ ^qdisc\ [a-z]+\ ([0-9a-f]+:)\ parent\ $SY_COUNTS_ROOT ]] || queue=${BASH_REMATCH[1]}
        elif [[ -z $queue ]]; then
            continue
        elif [[ $line =~ Sent\ ([0-9]+)\ bytes\ ([0-9]+)\ pkt\ \(dropped\ ([0-9]+), ]]; then
            counts[$queue]="${BASH_REMATCH[1]} ${BASH_REMATCH[2]} ${BASH_REMATCH[3]}"
        elif [[ $line =~ backlog\ ([0-9]+)(K|M|)b\ ([0-9]+)p ]]; then
            line=${BASH_REMATCH[1]}
            [[ -z ${BASH_REMATCH[2]} ]] || line=$((line * 1024))
            [[ ${BASH_REMATCH[2]} != M ]] || line=$((line * 1024))
            counts[$queue]+=" $line ${BASH_REMATCH[3]}"
        fi
    done
    ((${#counts[@]} > 0))
}

# By how much each count of the queue that has had most packets has grown: `bytes`, `packets`,
# `dropped` of the caller, and `rise`, packets that have come to it.
sy_counts_rise() { # reads `before` and `counts`
    local queue
    local -a was now
    rise=-1
    for queue in "${!counts[@]}"; do
        read -r -a was <<<"${before[$queue]:-0 0 0 0 0}"
        read -r -a now <<<"${counts[$queue]}"
        local -i n=$((now[1] + now[2] + now[4] - was[1] - was[2] - was[4]))
        ((n > rise)) || continue
        # shellcheck disable=SC2034 # the caller's
        rise=$n bytes=$((now[0] - was[0])) packets=$((now[1] - was[1])) dropped=$((now[2] - was[2]))
    done
}

# --- datagrams -------------------------------------------------------------------------------

# So many, in equal shares to each address, one every so many ns, but those of the first µs at
# once; what has not gone after LIMIT µs stays. Nobody listens: some are refused, and those that a
# refusal kept from being sent are not counted. Prints how many have gone.
sy_counts_send() { # "<count> <bytes> <ns> <lead us> <limit us> <port> <address>..."
    local i n sent=0 data begin address passed
    local -a words
    read -r -a words <<<"$1"
    local -r share=$((words[0] / (${#words[@]} - 6))) gap=${words[2]} limit=${words[4]}
    printf -v data '%*s' "${words[1]}" ''
    begin=${EPOCHREALTIME//[^0-9]/}
    for address in "${words[@]:6}"; do
        for ((i = 0; i < share; i++)); do
            ((sent % 8)) || for (( ; ; )); do
                passed=$((${EPOCHREALTIME//[^0-9]/} - begin))
                ((passed <= limit)) || break 3
                ((sent * gap > (passed + words[3]) * 1000)) || break
                sy_pause 0.002
            done
            for ((n = 0; n < 3; n++)); do
                printf '%s' "$data" && sent=$((sent + 1)) && break
            done
        done >"/dev/udp/$address/${words[5]}"
    done 2>/dev/null
    printf '%d' "$sent"
}

# From the first container; sets `sent` of the caller.
sy_counts_tell() { # <count> <bytes> <ns> <lead us> <limit us>
    sy_launcher_tell "send $* $SY_CONDITION_PORT $(sy_condition_others)"
}

sy_counts_told() {
    local answer
    sy_launcher_answer sent && sent=$answer
}

# --- loss ------------------------------------------------------------------------------------

# Sent, and read until all of them are counted; sets `sent`, `rise` and `dropped` of the caller.
sy_loss_count() { # <count> <ns>
    local try bytes packets asked told
    local -A before=() counts=()
    sy_counts_read || return
    sy_counts_copy
    sy_counts_tell "$1" 8 "$2" 0 2500000 && sy_counts_told || return
    for ((try = 0; try < 20; try++)); do
        sy_counts_read || return
        sy_counts_rise
        ((rise < sent)) || break
        sy_pause 0.02
    done
}

sy_counts_copy() {
    local queue
    for queue in "${!counts[@]}"; do
        before[$queue]=${counts[$queue]}
    done
}

# Whether so many of so many are what chance makes of a probability (in 1e-8), 99.9 % on both sides
# together: 3.29 standard deviations of the binomial distribution, and 2 for its skewness (z² − 1)/6
# and that counts are whole (Cornish and Fisher).
sy_loss_fits() { # <lost> <of> <1e-8>
    # In thousandths.
    local -r mean=$(($2 * $3 / 100000))
    local off=$(($1 * 1000 - mean))
    off=$((off < 0 ? -off - 2000 : off - 2000))
    ((off <= 0 || off * off <= 10828 * (mean * ((100000000 - $3) / 100000) / 1000)))
}

# Sets `verified`, `open` or `none` of the caller. What is beyond chance is counted once more: by chance
# alone that is one good run in a million.
sy_condition_loss() { # <1e-8>
    local try sent=0 rise=0 dropped=0
    local -r count=$((10000000000 / $1 + 500)) gap=$(sy_loss_gap)
    for try in 1 2; do
        sy_loss_count "$count" "$gap" || return
        ((sent > 0 && rise * 100 >= sent * 98)) || { sy_condition_passes_by && return; } || return
        if ((rise > sent + sent / 10)); then
            continue
        elif ((sent * $1 / 100000000 < 60)); then
            sy_condition_open "$sent datagrams, as many as went in 2.5 s, are too few to tell such a loss"
            return 0
        elif sy_loss_fits "$dropped" "$rise" "$1"; then
            verified+="${verified:+, }$dropped of $rise packets between containers of two nodes were lost"
            return 0
        fi
    done
    if ((rise > sent + sent / 10)); then
        sy_condition_open "beside $sent datagrams for counting loss $((rise - sent)) other packets left the node"
        return 0
    fi
    sy_say "$SY_LAUNCHER: of $rise packets between its containers $dropped were lost, which $spec does not explain (99.9 %)"
    return 4
}

# ns from one to the next, so that a rate's queue does not fill: 0 without.
sy_loss_gap() {
    local rate
    rate=$(sy_condition_rate_of "$spec")
    printf '%d' "$((${rate:-0} ? 50 * 8 * 2 * 1000000000 / rate : 0))"
}

# The containers' packets do not come to the queue: do the nodes' own? Sets `none`.
sy_condition_passes_by() {
    local bytes packets dropped rise asked told
    local -A before=() counts=()
    sy_counts_read || return
    sy_counts_copy
    sent=$(sy_counts_send "200 8 0 0 1000000 $SY_CONDITION_PORT ${SY_PLACE_ADDRESSES#* }")
    sy_counts_read || return
    sy_counts_rise
    if ((rise < sent * 9 / 10)); then
        none='what the nodes send each other does not meet it, nor what their containers send'
        return
    fi
    sy_say "$SY_LAUNCHER: $spec holds for its nodes and not for its containers, whose addresses are of 198.18.0.0/15: name these with to=, too, leave to= out, or take scope=node"
    return 4
}

# --- rate ------------------------------------------------------------------------------------

# A little more than RATE for 1.6 s, much of it at once, and read until all has been sent; sets `sent`,
# `bytes`, `rise`, and `readings` of the caller: ASKED TOLD BYTES WAITING-BYTES, since the first one.
sy_rate_readings() { # <bit/s> <bytes of a datagram> <us that each packet waits anyway>
    # shellcheck disable=SC2034 # sy_counts_rise sets all of them
    local asked told packets dropped end
    local -A before=() counts=()
    local -r bits=$((($2 + 42 + ($2 / 1480) * 34) * 8))
    local -r gap=$((bits * 10000000000 / 11 / $1))
    local -r lead=$(sy_rate_lead_us "$1") long=$((1600000 + $3))
    sy_counts_read || return
    sy_counts_copy
    sy_counts_tell "$((long * 1000 / gap))" "$2" "$gap" "$((lead + $3))" "$long" || return
    end=$((${EPOCHREALTIME//[^0-9]/} + long + 1000000))
    until read -r -t 0 -u "$SY_LAUNCHER_IN" || ((${EPOCHREALTIME//[^0-9]/} > end)); do
        sy_pause 0.02
        sy_counts_read || return
        sy_counts_rise
        readings+=("$asked $told $bytes $(sy_rate_waiting)")
    done
    sy_counts_told && sy_rate_drained
}

# What is sent at once: 700 full packets, of at least 1000 that a queue takes; from 0.1 to 0.8 s of it.
sy_rate_lead_us() { # <bit/s>
    local us=$((700 * 1514 * 8 * 1000000 / $1))
    us=$((us > 800000 ? 800000 : us))
    printf '%d' "$((us < 100000 ? 100000 : us))"
}

sy_rate_waiting() { # of all of Steelyard's queues on the device
    local queue sum=0
    local -a now
    for queue in "${!counts[@]}"; do
        read -r -a now <<<"${counts[$queue]}"
        sum=$((sum + now[3]))
    done
    printf '%d' "$sum"
}

# Until nothing waits any more, so that nothing of it is in the measured time; sets `bytes`.
sy_rate_drained() {
    local try
    for ((try = 0; try < 100; try++)); do
        sy_counts_read || return
        sy_counts_rise
        (($(sy_rate_waiting) > 3000)) || break
        sy_pause 0.02
    done
}

# The longest time in which the queue was surely never empty: at each reading as much waited as RATE
# lets pass until the next one. Sets `most` and `least`, bit/s that have passed in it at most and at
# least, and `lasted`, µs; reads `readings`. False: there is none.
sy_rate_full() { # <bit/s> <us that each packet waits anyway>
    local i begin=0 from=0 to=0
    local -a now next
    for ((i = 1; i < ${#readings[@]}; i++)); do
        read -r -a now <<<"${readings[i - 1]}"
        read -r -a next <<<"${readings[i]}"
        ((now[3] * 8000000 >= $1 * (next[1] - now[0] + $2))) || begin=$i
        ((i - begin <= to - from)) || from=$begin to=$i
    done
    ((to > from)) || return
    sy_rate_between "$from" "$to"
}

sy_rate_between() { # <reading> <reading>; sets `most`, `least`, `lasted`
    local -a older newer
    read -r -a older <<<"${readings[$1]}"
    read -r -a newer <<<"${readings[$2]}"
    lasted=$((newer[0] - older[1]))
    ((lasted > 0)) || return
    most=$(((newer[2] - older[2]) * 8000000 / lasted))
    least=$(((newer[2] - older[2]) * 8000000 / (newer[1] - older[0])))
}

# Sets `verified`, `open` or `none` of the caller. Only what surely is another rate fails the run.
sy_condition_rate() { # <bit/s>
    local try sent bytes rise size=1400 expected wait_us most least lasted
    local -a readings
    wait_us=$(sy_rate_wait_us)
    if (($1 < 300000)); then
        sy_condition_open 'so low a rate takes longer than 2 s to be seen'
        return 0
    fi
    (($1 < 20000000)) || [[ ,$spec == *,port=* ]] || size=28672
    for try in 1 2; do
        readings=()
        sy_rate_readings "$1" "$size" "$wait_us" || return
        expected=$((sent * ((size + 8 + 1479) / 1480)))
        ((expected > 0 && rise * 100 >= expected * 90)) || { sy_condition_passes_by && return; } || return
        ((rise * 100 > expected * 110)) || ! sy_rate_is "$1" || return 0
    done
    if [[ -n $least ]] && ((least * 100 > $1 * 105 || most * 100 < $1 * 95)); then
        sy_say "$SY_LAUNCHER: with a full queue $((least / 1000)) to $((most / 1000)) kbit/s passed between its containers: $spec is not in force"
        return 4
    fi
    sy_condition_open 'the rate could not be told to 5 %, for the queue was not full all the time or the node too busy'
}

# Whether it is; sets `verified`.
sy_rate_is() { # <bit/s>
    least='' most=''
    if ! sy_rate_full "$1" "$wait_us" || ((lasted < 300000)); then
        # More than may pass, the queue full or not?
        least='' most=''
        ((${#readings[@]} < 4)) || sy_rate_between "$((${#readings[@]} / 4))" "$((${#readings[@]} - 2))"
        ((${least:-0} * 100 > $1 * 105)) || least='' most=''
        return 1
    fi
    ((least * 100 >= $1 * 95 && most * 100 <= $1 * 105)) || return
    verified+="${verified:+, }with a full queue $((least / 1000)) to $((most / 1000)) kbit/s passed between containers of two nodes"
}

# What each packet waits at most, whatever the rate.
sy_rate_wait_us() {
    local -A unit=([us]=1 [ms]=1000 [s]=1000000)
    local sum=0 word part
    for word in ',delay=' '~'; do
        [[ ,$spec =~ $word([0-9]+)(\.([0-9]{1,6})[0-9]*)?(us|ms|s) ]] || continue
        part=${BASH_REMATCH[3]:-0}
        sum=$((sum + 10#${BASH_REMATCH[1]} * unit[${BASH_REMATCH[4]}] + 10#$part * unit[${BASH_REMATCH[4]}] / 10 ** ${#part}))
    done
    printf '%d' "$sum"
}
