#!/bin/bash
# Reads the wall clock and the time since boot, in microseconds, and sets deadlines. Part of steelyard.sh.
#
# The wall clock may be set while a run lasts: so deadlines are by the time since boot, and both clocks are
# read at the start and the end of what is timed.
#
# The wall clock is read as ${EPOCHREALTIME//[^0-9]/}, without a $(…): that would be a process, and Slurm
# sends its SIGTERM to every process of the job.

# Read the time since boot, in µs with a resolution of 10 ms: it does not jump when the wall clock is
# set. Empty where unknown. Without a process, whose end on a busy node would separate two readings.
sy_read_uptime() { # <the variable to set>
    local sy_up=''
    { read -r sy_up _ </proc/uptime; } 2>/dev/null || :
    [[ $sy_up == *.* ]] && sy_up=${sy_up/./}0000 || sy_up=''
    printf -v "$1" %s "$sy_up"
}

# Read both clocks at one time: repeated while more than 10 ms pass between the readings.
sy_read_clocks() { # <the variable to set to the wall clock> <that of the time since boot>
    local sy_before sy_gap
    for _ in 1 2 3 4 5; do
        sy_before=${EPOCHREALTIME//[^0-9]/}
        sy_read_uptime "$2"
        printf -v "$1" %s "${EPOCHREALTIME//[^0-9]/}"
        sy_gap=$((${!1} - sy_before))
        ((sy_gap < 0 || sy_gap > 10000)) || return 0
    done
}

# Set the time since boot of a recent time of the wall clock. Empty where unknown. The time since then is
# subtracted where it is more than the clock's resolution (10 ms).
sy_uptime_at() { # <the variable to set> <wall µs>
    local sy_wall
    sy_read_clocks sy_wall "$1"
    [[ -z ${!1} ]] || ((sy_wall - $2 <= 10000)) ||
        printf -v "$1" %d "$((${!1} - (sy_wall - $2)))"
}

# Set a time from now on. By time since boot, since the wall clock may be set.
sy_set_time() { # <the variable to set> <microseconds from now>
    sy_read_uptime "$1"
    printf -v "$1" %d "$((${!1:-${EPOCHREALTIME//[^0-9]/}} + $2))"
}

sy_is_past() { # <time of sy_set_time>
    local sy_now
    sy_set_time sy_now 0
    ((sy_now > $1))
}

sy_format_seconds() { # <microseconds, empty for null>
    if [[ -n $1 ]]; then
        printf '%d.%06d' "$(($1 / 1000000))" "$(($1 % 1000000))"
    else
        printf 'null'
    fi
}
