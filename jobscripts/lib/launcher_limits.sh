#!/bin/bash
# Processors and memory of a container: given, and looked at before anything is measured. Part of
# steelyard.sh; called by launcher.sh.

# --- processors ------------------------------------------------------------------------------

# The processors that this container may use, as a list for cpusets. Containers side by side get
# different ones as long as there are enough, and then the first ones again.
sy_launcher_choose_processors() {
    local -a have=() mine=()
    local -r beside=${SY_LAUNCHER_ACROSS:-$SY_LAUNCHER_CONTAINERS}
    local i index=$((SY_CLIENT % SY_LAUNCHER_CONTAINERS)) want=${SY_LAUNCHER_CPUS:-}
    sy_launcher_expand_list "$(sy_launcher_allowed_processors)"
    if [[ -n ${SY_LAUNCHER_ACROSS:-} ]]; then
        # Each has its share, looked at like a limit that was asked for.
        index=$SY_PEER want=${want:-$((${#have[@]} > beside ? ${#have[@]} / beside : 1))}
        export SY_LAUNCHER_CPUS=$want
    fi
    if ((${want:-1} > ${#have[@]})); then
        sy_log "$SY_LAUNCHER: cpus=$want, but this job has ${#have[@]} processors on $SY_THIS_NODE"
        return 4
    fi
    SY_SHARERS=$beside
    if [[ -n $want ]]; then
        for ((i = 0; i < want; i++)); do
            mine+=("${have[(index * want + i) % ${#have[@]}]}")
        done
        SY_SHARERS=$(((beside * want + ${#have[@]} - 1) / ${#have[@]}))
    else
        mine=("${have[@]}")
    fi
    SY_LAUNCHER_CPUSET=$(IFS=, && printf '%s' "${mine[*]}")
    export SY_SHARERS
}

# What this process may use, in the kernel's words: 0-3,8.
sy_launcher_allowed_processors() {
    sy_launcher_read_status Cpus_allowed_list
}

# A field of proc(5)'s status. All lines at once: `read` goes back after each, and what the kernel
# writes anew there may be a digit longer above.
sy_launcher_read_status() { # <field>
    local line
    local -a lines
    mapfile -t lines </proc/self/status
    for line in "${lines[@]}"; do
        [[ $line != "$1":* ]] || printf '%s' "${line##*[$'\t ']}"
    done
}

sy_launcher_expand_list() { # <0-3,8>; adds to `have` of the caller
    local part n
    local -a parts
    IFS=', ' read -r -a parts <<<"${1//[$'\t ']/}"
    for part in "${parts[@]}"; do
        for ((n = ${part%-*}; n <= ${part#*-}; n++)); do
            have+=("$n")
        done
    done
}

# --- a memory cgroup of ours -----------------------------------------------------------------

# Below the job's own memory cgroup (v1), so that the job's accounting still counts it; with v2,
# where a cgroup that has processes cannot have limited children, below the nearest one above that
# hands the controller down.
sy_launcher_make_cgroup() {
    local mount=/sys/fs/cgroup file=memory.max swap=memory.swap.max swap_bytes=0 path
    path=$(sed -nE 's/^[0-9]+:([^:]*,)?memory(,[^:]*)?://p' /proc/self/cgroup)
    if [[ -n $path ]]; then
        mount+=/memory file=memory.limit_in_bytes swap=memory.memsw.limit_in_bytes
        swap_bytes=$SY_LAUNCHER_MEMORY_BYTES # memory and swap together
    else
        path=$(sed -n 's/^0:://p' /proc/self/cgroup)
        path=$(sy_launcher_find_delegating_cgroup "$mount" "$path")
    fi
    SY_LAUNCHER_CGROUP=$mount${path%/}/$SY_LAUNCHER_NAME
    if sy_leftover_mark cgroup "$SY_LAUNCHER_CGROUP" && mkdir -- "$SY_LAUNCHER_CGROUP" && printf '%s' "$SY_LAUNCHER_MEMORY_BYTES" >"$SY_LAUNCHER_CGROUP/$file"; then
        # Not there where swap is not counted; `limit in force` below looks at memory only.
        [[ ! -e $SY_LAUNCHER_CGROUP/$swap ]] || printf '%s' "$swap_bytes" >"$SY_LAUNCHER_CGROUP/$swap"
        return
    fi
    sy_log "$SY_LAUNCHER: memory= cannot be applied on $SY_THIS_NODE: $SY_LAUNCHER_CGROUP/$file cannot be written"
    return 4
}

# The nearest cgroup above whose children have a memory controller.
sy_launcher_find_delegating_cgroup() { # <mount> <path>
    local path=$2 controllers
    while [[ -n $path && $path != / ]]; do
        path=${path%/*}
        read -r controllers <"$1$path/cgroup.subtree_control" || :
        [[ " $controllers " != *' memory '* ]] || break
    done
    printf '%s' "$path"
}

# --- what is in force ------------------------------------------------------------------------

# What was asked for and is not in force would make the figures those of another condition.
sy_launcher_check_limits() { # <processors that the container sees, as the kernel lists them>
    local limit want=${SY_LAUNCHER_MEMORY_BYTES:-}
    sy_condition_set_rto_min || return
    if [[ -n ${SY_LAUNCHER_CPUS:-} ]] && ! sy_launcher_is_same_list "$1" "$SY_LAUNCHER_CPUSET"; then
        sy_log "$SY_LAUNCHER: its processors should be $SY_LAUNCHER_CPUSET on $SY_THIS_NODE and are $1: this launcher cannot have cpus= there"
        return 4
    fi
    [[ -n ${SY_LAUNCHER_ACROSS:-} ]] || sy_tag launcher_cpus "$1"
    [[ -n $want ]] || return 0
    limit=$(sy_launcher_read_memory_limit "$(sy_kind pid)")
    # The kernel takes whole pages.
    if ((${limit:-want + 1} > want)); then
        sy_log "$SY_LAUNCHER: its memory should be limited to $want bytes on $SY_THIS_NODE and is ${limit:+limited to }${limit:-not limited, or cannot be looked at}: this launcher cannot have memory= there"
        return 4
    fi
    sy_tag launcher_memory_bytes "$limit"
}

# Whether two lists name the same processors.
sy_launcher_is_same_list() { # <list> <list>
    local n
    local -a have=()
    local -A seen=()
    sy_launcher_expand_list "$1"
    for n in "${have[@]}"; do
        seen[$n]=1
    done
    have=()
    sy_launcher_expand_list "$2"
    ((${#seen[@]} == ${#have[@]})) || return 1
    for n in "${have[@]}"; do
        [[ -n ${seen[$n]:-} ]] || return 1
    done
}

# The least memory limit of a process' cgroups, in bytes; nothing when none can be read.
sy_launcher_read_memory_limit() { # <pid>
    local hierarchy path mount file limit least=
    while IFS=: read -r _ hierarchy path; do
        case ",$hierarchy," in
        *,memory,*) mount=/sys/fs/cgroup/memory file=memory.limit_in_bytes ;;
        ,,) mount=/sys/fs/cgroup file=memory.max ;;
        *) continue ;;
        esac
        while [[ -n $path ]]; do
            limit=
            { read -r limit <"$mount${path%/}/$file"; } 2>/dev/null || :
            if [[ $limit =~ ^[0-9]+$ ]] && ((limit < ${least:-limit + 1})); then
                least=$limit
            fi
            path=${path%/*}
        done
    done <"/proc/$1/cgroup"
    printf '%s' "$least"
}
