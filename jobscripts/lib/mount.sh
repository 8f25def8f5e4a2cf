#!/bin/bash
# Where a benchmark of files works: its folder, what file system that is, and what the client side
# of a network file system counted meanwhile. Part of steelyard.sh; for benchmarks to call.

# --- the folder ------------------------------------------------------------------------------

# Sets SY_WORK: the scratch folder, or a fresh one below the given folder, which is removed when the
# client ends. Tags what is mounted there, and takes the first reading of its counters.
sy_work_in() { # <folder, may be empty>
    SY_WORK=$SY_SCRATCH
    if [[ -n $1 ]]; then
        SY_WORK=$(mktemp -d -- "$1/steelyard-$HOSTNAME-XXXXXXXX") || {
            sy_say "cannot make a folder in $1"
            return 3
        }
        trap 'sy_work_remove' EXIT
    fi
    sy_mount_tags "$SY_WORK"
    sy_mount_counters "$SY_WORK" before
}

# Only ever the folder that sy_work_in made.
sy_work_remove() {
    [[ $SY_WORK == */steelyard-"$HOSTNAME"-* && $SY_WORK != "$SY_SCRATCH" ]] || return 0
    rm -rf --one-file-system -- "$SY_WORK"
}

# --- what is mounted there -------------------------------------------------------------------

# mount.type (as the kernel has it), mount.name (nfs, lustre, orangefs, glusterfs, ceph, beegfs,
# tmpfs, ext4, …), mount.point, mount.source, mount.options; mount.version of NFS and SMB,
# mount.stripe_count of Lustre.
sy_mount_tags() { # <folder>
    local point type source options count
    read -r point type source options < <(sy_mount_of "$1")
    if [[ -z ${options:-} ]]; then
        sy_say "no mount known at $1: the run has no tags of it"
        return 0
    fi
    sy_tag mount.type "$type"
    sy_tag mount.name "$(sy_mount_name "$type")"
    sy_tag mount.point "$(printf '%b' "$point")"
    sy_tag mount.source "$(printf '%b' "$source")"
    sy_tag mount.options "$(printf '%b' "$options")"
    [[ ,$options != *,vers=* ]] || sy_tag mount.version "$(sy_mount_option vers "$options")"
    if [[ $type == lustre ]] && count=$(lfs getstripe -c -- "$1" 2>/dev/null); then
        sy_tag mount.stripe_count "$count"
    fi
}

# Target, type, source and options of the mount a folder is in; blanks in them as \x20.
sy_mount_of() { # <folder>
    findmnt --first-only --noheadings --raw --output TARGET,FSTYPE,SOURCE,OPTIONS --target "$1"
}

sy_mount_option() { # <key> <options>
    local rest=",$2,"
    rest=${rest#*,"$1"=}
    printf '%s' "${rest%%,*}"
}

# The file system's usual name, whichever of its clients has mounted it.
sy_mount_name() { # <type>
    case $1 in
    nfs*) printf nfs ;;
    pvfs2 | fuse.pvfs2* | fuse.orangefs*) printf orangefs ;;
    fuse.ceph*) printf ceph ;;
    beegfs*) printf beegfs ;;
    fuse.*) printf '%s' "${1#fuse.}" ;;
    *) printf '%s' "$1" ;;
    esac
}

# --- counters of the client side -------------------------------------------------------------

# ATTEMPT/mount.CLIENT.before and .after, read by jobscripts/mounts.py: the mount's part of
# /proc/self/mountstats, or Lustre's own statistics. No file where nothing is counted.
sy_mount_counters() { # <folder> <before|after>
    local point type source options
    local -r to=$SY_ATTEMPT_DIR/mount.$SY_CLIENT.$2
    read -r point type source options < <(sy_mount_of "$1")
    point=$(printf '%b' "${point:-}")
    case ${type:-} in
    nfs | nfs4) sy_mountstats "$point" <"${SY_MOUNTSTATS:-/proc/self/mountstats}" >"$to" ;;
    lustre) sy_lustre_stats "$1" >"$to" ;;
    esac
    return 0
}

# The part of mountstats that is about one mount point (a blank in it is written \040).
sy_mountstats() { # <mount point>
    awk -v point="${1// /\\\\040}" '
        /^device / { ours = 0; for (i = 2; i < NF; i++) if ($i == "on" && $(i + 1) == point) ours = 1 }
        ours { print }'
}

# The statistics of the Lustre file system that a folder is in: /proc before Lustre 2.12, then
# /sys/kernel/debug, which only root reads; lctl where there is one.
sy_lustre_stats() { # <folder>
    local name file
    name=$(lfs getname -- "$1" 2>/dev/null) name=${name%% *}
    if [[ -z $name ]]; then
        sy_say "no counters of Lustre: lfs getname does not know $1"
        return
    fi
    for file in "/proc/fs/lustre/llite/$name/stats" "/sys/kernel/debug/lustre/llite/$name/stats"; do
        cat -- "$file" 2>/dev/null && return
    done
    lctl get_param -n "llite.$name.stats" 2>/dev/null ||
        sy_say "no counters of Lustre: llite.$name.stats cannot be read"
}
