#!/bin/bash
# The interface to a kind of containers: launchers/KIND.sh implements it. Part of steelyard.sh; called by
# launcher.sh, which sets SY_LAUNCHER_NAME, _OWNER and _CPUSET.
#
# `sy_kind WORD` calls sy_KIND_WORD, or the default sy_child_WORD where a kind has no such function:
#   command   set SY_LAUNCHER_COMMAND, which executes SY_LAUNCHER_INSIDE in a container with its limits
#   pid       print a process inside, by the node's numbering
#   is_measured  print `yes`, `no` or `unknown`: whether the job's record counts the container's processes
#   remove    remove the container, when its command has ended
#   sweep     remove this user's containers of killed runs of this study

sy_kind() { # <word>
    local kind=${SY_LAUNCHER_KIND#systemd-}
    [[ $kind != docker && $kind != podman ]] || kind=engine
    declare -F "sy_${kind}_$1" >/dev/null || kind=child
    "sy_${kind}_$1"
}

# The container's processes are children of this shell.
sy_child_pid() {
    sy_launcher_find_descendant "$SY_LAUNCHER_PID"
}

sy_child_is_measured() {
    printf 'yes'
}

sy_child_remove() { :; }

sy_child_sweep() { :; }

sy_child_command() {
    sy_log "$SY_LAUNCHER: this version cannot start it"
    return 4
}

# Print the last process of the chain of first children.
sy_launcher_find_descendant() { # <pid>
    local pid=$1 child=$1
    while [[ -n $child ]]; do
        pid=$child child=
        { read -r child _ <"/proc/$pid/task/$pid/children"; } 2>/dev/null || :
    done
    printf '%s' "$pid"
}
