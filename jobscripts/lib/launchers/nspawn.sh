#!/bin/bash
# Containers of systemd-nspawn. Part of steelyard.sh; implements launcher_interface.sh.
#
# The image is a root folder. The container needs root, is not registered with systemd-machined and stays in
# the client's unit (--keep-unit). Its processes are counted. /etc/hosts is ours; processors and memory are
# applied around it (launcher_limits.sh).
# shellcheck disable=SC2034,SC2153 # SY_* are those of launcher.sh

# Writes go to memory: the root folder is unchanged, and several containers share it.
sy_nspawn_command() {
    local path name escaped hosts
    local -a run=()
    hosts=$(sy_launcher_write_hosts) || return
    ((EUID != 0)) || sy_leftover_mark folder "/run/systemd/nspawn/propagate/$SY_LAUNCHER_NAME" || return
    # Where /run is on a disk, nspawn would fail to remove its own folder there, with a message.
    # shellcheck disable=SC2016
    [[ $(stat --file-system --format=%T /run) == tmpfs ]] ||
        run=(unshare --mount sh -c 'mkdir -p "$0" && mount -t tmpfs tmpfs "$0" && exec "$@"'
            /run/systemd/nspawn/propagate)
    SY_LAUNCHER_COMMAND=(${run[@]+"${run[@]}"} systemd-nspawn --quiet --directory="$SY_LAUNCHER_IMAGE" --read-only
        --volatile=overlay --register=no --keep-unit --as-pid2 --kill-signal=SIGTERM --console=pipe
        --machine="$SY_LAUNCHER_NAME" --chdir="$SY_SCRATCH" --setenv=SY_ROLE=inside)
    for path in "${SY_LAUNCHER_PATHS[@]}"; do
        escaped=${path//\\/\\\\} escaped=${escaped//:/\\:}
        SY_LAUNCHER_COMMAND+=(--bind="$escaped:$escaped")
    done
    escaped=${hosts//\\/\\\\} escaped=${escaped//:/\\:}
    SY_LAUNCHER_COMMAND+=(--bind-ro="$escaped:/etc/hosts")
    while read -r name; do
        SY_LAUNCHER_COMMAND+=(--setenv="$name=${!name}")
    done < <(sy_launcher_list_variables)
    SY_LAUNCHER_COMMAND+=(/bin/"${SY_LAUNCHER_INSIDE[0]}" "${SY_LAUNCHER_INSIDE[@]:1}")
    sy_launcher_apply_limits
}
