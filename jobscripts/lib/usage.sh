#!/bin/bash
# The usage of a benchmark's program, without the shells around it. Part of steelyard.sh.
#
# A job's record counts every process of the job, also srun and Steelyard's shells. So a benchmark's
# job.sh starts its program by `sy_measured`, and steelyard-time measures it: KEY=VALUE lines in
# ATTEMPT/usage.CLIENT.N. The usage of all shells and the children they waited for (`times`) is in
# ATTEMPT/shell.CLIENT and shell.main. While the record has no more than that, no process of the program
# was missed, and collect uses the program's figures (collect/run_output_import.py).

# Run a command and measure it where steelyard-time is installed; the exit code is the command's.
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

# Set SY_TIMER to a steelyard-time that runs: it may be built for another machine. Called before the
# measured time.
sy_find_timer() {
    local path
    for path in "${STEELYARD_TIME:-}" {/usr/local,/usr}/libexec/steelyard/steelyard-time; do
        [[ -n $path && -x $path ]] && "$path" --help >/dev/null 2>&1 && SY_TIMER=$path && return
    done
}

# Write the CPU time of this shell and of the children it has waited for. The first line is `below` where
# the first shell of the run waits for this one, so that its time includes this one's, else `apart`.
sy_write_shell_usage() { # <main|number of the client>
    local relation=apart
    sy_is_descendant_of_main && relation=below
    { printf '%s\n' "$relation" && times; } >"$SY_ATTEMPT_DIR/shell.$1" || :
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
