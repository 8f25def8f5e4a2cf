#!/bin/bash
# Processors and memory of a container: applied, and verified before anything is measured. Part of
# steelyard.sh; called by launcher.sh.
#
# Containers of a node get different processors of those that the job may use; where there are too few, they
# share them, and SY_SHARERS is how many. Memory is limited without swap, in a cgroup of ours. With cgroup
# v1 it is below the job's; with v2 it may be outside of it, and Slurm's accounting then lacks the
# container.
#
# It promises that no run is measured with another limit than the requested one: what the kernel has for a
# process inside is compared with it. A missing limit, or more processors than the job has, ends the run
# with 4. What is in force is tagged. Without cpus= a container has all processors of the job, with
# ranks=across an equal share; without memory= it has no limit of its own.

# --- processors ------------------------------------------------------------------------------

# Set SY_LAUNCHER_CPUSET, the container's processors, and SY_SHARERS, how many containers share one.
# Containers get different processors; when there are too few, the list is used again from its start.
sy_launcher_choose_processors() {
    local -a processors=() chosen=()
    local -r containers=${SY_LAUNCHER_ACROSS:-$SY_LAUNCHER_CONTAINERS}
    local i index=$((SY_CLIENT % SY_LAUNCHER_CONTAINERS)) wanted=${SY_LAUNCHER_CPUS:-}
    sy_launcher_expand_list "$(sy_launcher_allowed_processors)"
    if [[ -n ${SY_LAUNCHER_ACROSS:-} ]]; then
        # Each has an equal share, verified like a requested limit.
        index=$SY_PEER wanted=${wanted:-$((${#processors[@]} > containers ? ${#processors[@]} / containers : 1))}
        export SY_LAUNCHER_CPUS=$wanted
    fi
    if ((${wanted:-1} > ${#processors[@]})); then
        sy_log "$SY_LAUNCHER: cpus=$wanted, but this job has ${#processors[@]} processors on $SY_THIS_NODE"
        return 4
    fi
    SY_SHARERS=$containers
    if [[ -n $wanted ]]; then
        for ((i = 0; i < wanted; i++)); do
            chosen+=("${processors[(index * wanted + i) % ${#processors[@]}]}")
        done
        SY_SHARERS=$(((containers * wanted + ${#processors[@]} - 1) / ${#processors[@]}))
    else
        chosen=("${processors[@]}")
    fi
    SY_LAUNCHER_CPUSET=$(IFS=, && printf '%s' "${chosen[*]}")
    export SY_SHARERS
}

# Print the processors that this process may use, as the kernel lists them: 0-3,8.
sy_launcher_allowed_processors() {
    sy_launcher_read_status Cpus_allowed_list
}

# Print a field of /proc/self/status. mapfile reads all lines at once: `read` seeks back after each line,
# and the file's earlier lines may have grown by a digit meanwhile.
sy_launcher_read_status() { # <field>
    local line
    local -a lines
    mapfile -t lines </proc/self/status
    for line in "${lines[@]}"; do
        [[ $line != "$1":* ]] || printf '%s' "${line##*[$'\t ']}"
    done
}

sy_launcher_expand_list() { # <0-3,8>; adds to `processors` of the caller
    local range n
    local -a parts
    IFS=', ' read -r -a parts <<<"${1//[$'\t ']/}"
    for range in "${parts[@]}"; do
        for ((n = ${range%-*}; n <= ${range#*-}; n++)); do
            processors+=("$n")
        done
    done
}

# --- a memory cgroup -------------------------------------------------------------------------

# Make a memory cgroup for the container. With v1 it is below the job's memory cgroup, so that the job's
# accounting counts it. With v2 a cgroup that has processes cannot have limited children: it is below
# the nearest ancestor that delegates the controller.
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
        # The file is missing where swap is not counted; sy_launcher_check_limits checks memory only.
        [[ ! -e $SY_LAUNCHER_CGROUP/$swap ]] || printf '%s' "$swap_bytes" >"$SY_LAUNCHER_CGROUP/$swap"
        return
    fi
    sy_log "$SY_LAUNCHER: memory= cannot be applied on $SY_THIS_NODE: $SY_LAUNCHER_CGROUP/$file cannot be written"
    return 4
}

# Print the nearest ancestor cgroup whose children have a memory controller.
sy_launcher_find_delegating_cgroup() { # <mount> <path>
    local path=$2 controllers
    while [[ -n $path && $path != / ]]; do
        path=${path%/*}
        read -r controllers <"$1$path/cgroup.subtree_control" || :
        [[ " $controllers " != *' memory '* ]] || break
    done
    printf '%s' "$path"
}

# --- verification ----------------------------------------------------------------------------

# Fail where a requested limit is not in force: the run would measure another condition.
sy_launcher_check_limits() { # <processors that the container sees, as the kernel lists them>
    local limit wanted=${SY_LAUNCHER_MEMORY_BYTES:-}
    sy_condition_set_rto_min || return
    if [[ -n ${SY_LAUNCHER_CPUS:-} ]] && ! sy_launcher_is_same_list "$1" "$SY_LAUNCHER_CPUSET"; then
        sy_log "$SY_LAUNCHER: its processors should be $SY_LAUNCHER_CPUSET on $SY_THIS_NODE and are $1: this launcher cannot have cpus= there"
        return 4
    fi
    [[ -n ${SY_LAUNCHER_ACROSS:-} ]] || sy_tag launcher_cpus "$1"
    [[ -n $wanted ]] || return 0
    limit=$(sy_launcher_read_memory_limit "$(sy_kind pid)")
    # The kernel rounds limits down to pages.
    if ((${limit:-wanted + 1} > wanted)); then
        sy_log "$SY_LAUNCHER: its memory should be limited to $wanted bytes on $SY_THIS_NODE and is ${limit:+limited to }${limit:-not limited, or cannot be looked at}: this launcher cannot have memory= there"
        return 4
    fi
    sy_tag launcher_memory_bytes "$limit"
}

# Whether two lists name the same processors.
sy_launcher_is_same_list() { # <list> <list>
    local n
    local -a processors=()
    local -A first_list=()
    sy_launcher_expand_list "$1"
    for n in "${processors[@]}"; do
        first_list[$n]=1
    done
    processors=()
    sy_launcher_expand_list "$2"
    ((${#first_list[@]} == ${#processors[@]})) || return 1
    for n in "${processors[@]}"; do
        [[ -n ${first_list[$n]:-} ]] || return 1
    done
}

# Print the least memory limit of a process' cgroups, in bytes; nothing when none can be read.
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
