#!/bin/bash
# What a benchmark's program used, apart from the shells around it. Part of steelyard.sh.
#
# A job's record counts every process of the job: srun, and some shells of ours. So a benchmark's
# job.sh starts its program by `sy_measured`, and steelyard-time waits for it: KEY=VALUE lines in
# ATTEMPT/usage.CLIENT.N. What all our shells and their children used (`times`) is in
# ATTEMPT/shell.CLIENT and shell.main: as long as the record has no more, the program left nothing
# behind that nobody waited for, and collect takes its own figures (collect/command_usage.py).

# Run a command and measure it, where steelyard-time is here; the exit code is the command's.
sy_measured() { # <command> <argument>...
    local n=1
    [[ -n ${SY_TIMER:-} ]] || {
        "$@"
        return
    }
    while [[ -e $SY_ATTEMPT_DIR/usage.$SY_CLIENT.$n ]]; do
        n=$((n + 1))
    done
    "$SY_TIMER" "$SY_ATTEMPT_DIR/usage.$SY_CLIENT.$n" "$@"
}

# Before the measured time: sets SY_TIMER, once it has run: it may be another machine's.
sy_find_timer() {
    local path
    for path in "${STEELYARD_TIME:-}" {/usr/local,/usr}/libexec/steelyard/steelyard-time; do
        [[ -n $path && -x $path ]] && "$path" --help >/dev/null 2>&1 && SY_TIMER=$path && return
    done
}

# CPU time of this shell and of what it has waited for, into a file: `below` where the first shell of
# the run waits for this one, so that its own time takes this one in, else `apart`.
sy_write_shell_usage() { # <main|number of the client>
    local place=apart
    sy_is_descendant_of_main && place=below
    { printf '%s\n' "$place" && times; } >"$SY_ATTEMPT_DIR/shell.$1" || :
} 2>/dev/null

sy_is_descendant_of_main() {
    local pid=$PPID
    local -a stat=()
    [[ ${SY_MAIN:-} == *@"$HOSTNAME" ]] || return 1
    while ((pid > 1)); do
        [[ $pid != "${SY_MAIN%%@*}" ]] || return 0
        sy_read_process_stat "$pid" || return 1
        pid=${stat[1]}
    done
    return 1
}
