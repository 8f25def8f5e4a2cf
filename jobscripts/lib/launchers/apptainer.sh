#!/bin/bash
# Containers of apptainer. Part of steelyard.sh; implements launcher_interface.sh.
#
# The image is a file or folder, and works without root and without a daemon. The container is a child of
# the client, so its processes are counted. It has its own processes, System V objects and /dev/shm; the
# home folder is not mounted. Memory: for root a cgroup of ours, for others apptainer's --memory, which
# needs systemd.
# shellcheck disable=SC2034,SC2153 # SY_* are those of launcher.sh

sy_apptainer_command() {
    local path
    # Its own /dev/shm, for the reason that unshare has one.
    SY_LAUNCHER_COMMAND=(apptainer exec --pid --ipc --no-home --scratch /dev/shm --pwd "$SY_SCRATCH")
    export SY_MPI_TMP=/dev/shm
    [[ $SY_LAUNCHER_NETWORK == host || -n ${SY_NETWORK_NS:-} ]] || SY_LAUNCHER_COMMAND+=(--net --network "$SY_LAUNCHER_NETWORK")
    # Root has a cgroup by sy_launcher_pin, which works everywhere; apptainer's own needs systemd.
    [[ -z ${SY_LAUNCHER_MEMORY_BYTES:-} || $EUID == 0 ]] ||
        SY_LAUNCHER_COMMAND+=(--memory "$SY_LAUNCHER_MEMORY_BYTES")
    # apptainer requests all capabilities; root in a container often lacks this one.
    ((EUID != 0)) || sy_apptainer_has_capability 24 || SY_LAUNCHER_COMMAND+=(--drop-caps CAP_SYS_RESOURCE)
    for path in "${SY_LAUNCHER_PATHS[@]}"; do
        SY_LAUNCHER_COMMAND+=(--mount "type=bind,$(sy_launcher_quote_field "source=$path"),$(sy_launcher_quote_field "destination=$path")")
    done
    SY_LAUNCHER_COMMAND+=("$SY_LAUNCHER_IMAGE" "${SY_LAUNCHER_INSIDE[@]}")
    sy_launcher_pin || return
    [[ -z ${SY_NETWORK_NS:-} ]] || sy_launcher_enter_network
}

sy_apptainer_has_capability() { # <number in linux/capability.h>
    ((16#$(sy_launcher_read_status CapPrm) >> $1 & 1))
}
