#!/bin/bash
# The work folder of a file-system benchmark: below the folder that the study names, new for each client,
# and removed when the client ends. Part of steelyard.sh; for benchmarks to call.

# Set SY_WORK: the scratch folder, or a new one below the given folder, which is removed when the client
# ends. Tags its mount, and saves the first reading of the mount's counters.
sy_make_work_folder() { # <folder, may be empty>
    SY_WORK=$SY_SCRATCH
    if [[ -n $1 ]]; then
        SY_WORK=$(mktemp -d -- "$1/steelyard-$HOSTNAME-XXXXXXXX") || {
            sy_log "cannot make a folder in $1"
            return 3
        }
        trap 'sy_remove_work_folder' EXIT
    fi
    sy_tag_mount "$SY_WORK"
    sy_save_mount_counters "$SY_WORK" before
}

# Remove the work folder, if sy_make_work_folder made it.
sy_remove_work_folder() {
    [[ $SY_WORK == */steelyard-"$HOSTNAME"-* && $SY_WORK != "$SY_SCRATCH" ]] || return 0
    rm -rf --one-file-system -- "$SY_WORK"
}
