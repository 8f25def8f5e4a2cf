#!/bin/bash
# Containers of docker and podman. Part of steelyard.sh; implements launcher_interface.sh.
#
# A run never pulls an image: it must be on the node, and its id is a tag. The container runs as the user
# with their groups; podman also works without root. Limits are the engine's, without swap. An ordinary
# user's podman gets processors by affinity where it cannot use cpuset, and refuses memory= where that
# controller is not delegated.
#
# docker's processes are children of its daemon: the job's record does not count them (`no`). podman's leave
# the job's cgroup: a sampler around the run counts them, a job's may not (`unknown`). Containers carry the
# study, the run and the owner as labels, by which leftovers are found.
# shellcheck disable=SC2034,SC2153 # SY_* are those of launcher.sh

sy_engine_command() {
    local -r engine=$SY_LAUNCHER_KIND
    local name path network=$SY_LAUNCHER_NETWORK
    local -a groups
    sy_engine_has_image "$engine" || return
    SY_LAUNCHER_PINNED=
    ((EUID != 0)) || sy_leftover_mark container "$engine $SY_LAUNCHER_NAME" || return
    [[ $engine != podman || $EUID == 0 ]] || sy_engine_check_rootless || return
    if [[ $network == macvlan ]]; then
        network=$(sy_engine_find_macvlan "$engine") || return
    elif [[ -n ${SY_LAUNCHER_ACROSS:-} && $(sy_network_provider) == ours ]]; then
        network=none
        [[ -z ${SY_NETWORK_NS:-} ]] || network=ns:/run/netns/$SY_NETWORK_NS
    fi
    [[ $engine != podman || -d /run/systemd/system ]] || SY_LAUNCHER_COMMAND=(--cgroup-manager=cgroupfs)
    SY_LAUNCHER_COMMAND=("$engine" "${SY_LAUNCHER_COMMAND[@]}" run --interactive --rm --pull=never
        --name="$SY_LAUNCHER_NAME" --label="steelyard.study=${SY_LAUNCHER_LABEL:-$SY_STUDY_DIR}"
        --label="steelyard.run=$SY_RUN_ID" --label="steelyard.owner=$SY_LAUNCHER_OWNER"
        --user="$EUID:$(id -g)" --workdir="$SY_SCRATCH" --network="$network"
        --shm-size="$(sy_launcher_shm_bytes)" --env=SY_ROLE)
    if [[ -n $SY_LAUNCHER_PINNED ]]; then
        SY_LAUNCHER_COMMAND=(taskset --cpu-list "$SY_LAUNCHER_CPUSET" "${SY_LAUNCHER_COMMAND[@]}")
    else
        SY_LAUNCHER_COMMAND+=(--cpuset-cpus="$SY_LAUNCHER_CPUSET")
    fi
    if [[ $engine == podman && $EUID != 0 ]]; then
        SY_LAUNCHER_COMMAND+=(--userns=keep-id)
        # What leaves the node goes through a program, not through the kernel's bridge alone.
        [[ $network != bridge ]] || sy_tag launcher_network 'bridge, slirp4netns'
    fi
    read -r -a groups <<<"$(id -G)"
    for name in "${groups[@]:1}"; do
        SY_LAUNCHER_COMMAND+=(--group-add="$name")
    done
    [[ -z ${SY_LAUNCHER_MEMORY_BYTES:-} ]] || SY_LAUNCHER_COMMAND+=(
        --memory="$SY_LAUNCHER_MEMORY_BYTES" --memory-swap="$SY_LAUNCHER_MEMORY_BYTES")
    while read -r name; do
        SY_LAUNCHER_COMMAND+=(--env="$name")
    done < <(sy_launcher_list_variables)
    for path in "${SY_LAUNCHER_PATHS[@]}"; do
        SY_LAUNCHER_COMMAND+=(--mount="type=bind,$(sy_launcher_quote_field "source=$path"),$(sy_launcher_quote_field "target=$path")")
    done
    SY_LAUNCHER_COMMAND+=(--entrypoint="${SY_LAUNCHER_INSIDE[0]}" "$SY_LAUNCHER_IMAGE"
        "${SY_LAUNCHER_INSIDE[@]:1}")
}

# Check that an ordinary user's podman can apply the limits. It can use only delegated controllers: none
# with cgroup v1, where podman warns and continues, and mostly no cpuset with v2. Then SY_LAUNCHER_PINNED
# is set: the container inherits the command's affinity.
sy_engine_check_rootless() {
    local controllers
    controllers=$(podman info --format='{{.Host.CgroupControllers}}' 2>&1) || {
        sy_log "podman cannot be used on $SY_THIS_NODE: ${controllers##*$'\n'}"
        return 3
    }
    controllers=${controllers##*$'\n'} # warnings come before it
    if [[ -n ${SY_LAUNCHER_MEMORY_BYTES:-} && ! $controllers =~ [[\ ]memory[]\ ] ]]; then
        sy_log "$SY_LAUNCHER: podman without root cannot limit memory on $SY_THIS_NODE (controllers it was given: ${controllers:-[]}): leave memory= out, or ask the administrator for cgroup v2 with memory delegated to users"
        return 4
    fi
    [[ $controllers =~ [[\ ]cpuset[]\ ] ]] || SY_LAUNCHER_PINNED=1
}

# Check that the node has the image. A run never pulls it: the image could change between runs.
sy_engine_has_image() { # <docker or podman>
    local output
    output=$("$1" image inspect --format='{{.Id}}' "$SY_LAUNCHER_IMAGE" 2>&1) && {
        sy_tag launcher_image_id "$output"
        return 0
    }
    case ${output,,} in
    *'no such image'* | *'not known'* | *'not found'* | *'failed to find'*)
        sy_log "the image $SY_LAUNCHER_IMAGE is not on $SY_THIS_NODE: say there $1 pull $SY_LAUNCHER_IMAGE, or steelyard image make $1:$SY_LAUNCHER_IMAGE"
        ;;
    *) sy_log "$1 cannot be used on $SY_THIS_NODE: ${output##*$'\n'}" ;;
    esac
    return 3
}

# Print an existing macvlan network. None is made: its addresses are the administrator's to assign.
sy_engine_find_macvlan() { # <docker or podman>
    local name
    name=$("$1" network ls --filter=driver=macvlan --format='{{.Name}}') name=${name%%$'\n'*}
    [[ -n $name ]] || {
        sy_log "$1 on $SY_THIS_NODE has no network of the driver macvlan: make one there, $1 network create --driver=macvlan --subnet=NETWORK --opt=parent=DEVICE steelyard"
        return 4
    }
    printf '%s' "$name"
}

# --- pid, accounting, removal ----------------------------------------------------------------

sy_engine_pid() {
    "$SY_LAUNCHER_KIND" inspect --format='{{.State.Pid}}' "$SY_LAUNCHER_NAME"
}

sy_engine_is_measured() {
    if [[ $SY_LAUNCHER_KIND == docker ]]; then
        printf 'no' # children of a daemon, not of the job
    else
        # They lose their parent and leave the job's cgroup; a sampler around the run still counts them.
        sy_scheduler counts_moved_processes
    fi
}

sy_engine_remove() {
    "$SY_LAUNCHER_KIND" rm --force "$SY_LAUNCHER_NAME" >/dev/null 2>&1 || :
}

sy_engine_sweep() {
    local id owner format='{{.ID}} {{.Label "steelyard.owner"}}' filter="label=steelyard.study=${SY_LAUNCHER_LABEL:-$SY_STUDY_DIR}"
    if [[ $SY_LAUNCHER_KIND == podman ]]; then # whose filters are read as CSV, and whose Labels are a map
        filter=$(sy_launcher_quote_field "$filter") format='{{.ID}} {{index .Labels "steelyard.owner"}}'
    fi
    while read -r id owner; do
        sy_process_is_running "$owner" || "$SY_LAUNCHER_KIND" rm --force "$id" >/dev/null
    done < <("$SY_LAUNCHER_KIND" ps --all --filter="$filter" --format="$format" 2>/dev/null)
    return 0
}
