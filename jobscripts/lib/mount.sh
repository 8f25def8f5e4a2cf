#!/bin/bash
# Where a benchmark of files works: its folder, and what file system that is. What the client side of
# a network file system counts meanwhile: mount_counters.sh. Part of steelyard.sh; for benchmarks.
# Below SY_MOUNT_ROOT (empty: /) files of the kernel and of mounts are read: a recorded tree in tests.

# --- the folder ------------------------------------------------------------------------------

# Sets SY_WORK: the scratch folder, or a fresh one below the given folder, which is removed when the
# client ends. Tags what is mounted there, and takes the first reading of its counters.
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

# Only ever the folder that sy_make_work_folder made.
sy_remove_work_folder() {
    [[ $SY_WORK == */steelyard-"$HOSTNAME"-* && $SY_WORK != "$SY_SCRATCH" ]] || return 0
    rm -rf --one-file-system -- "$SY_WORK"
}

# --- what is mounted there -------------------------------------------------------------------

# mount.type (as the kernel has it), mount.name (nfs, lustre, orangefs, glusterfs, ceph, beegfs,
# cvmfs, tmpfs, ext4, …), mount.point, mount.source, mount.server, mount.options, mount.version, and
# how files are laid out on servers: mount.stripe_count and mount.stripe_size_bytes of Lustre and
# OrangeFS, mount.layout of Ceph, mount.bricks of GlusterFS. A layout that cannot be read is
# `not known: ` and the reason.
sy_tag_mount() { # <folder>
    local point type source options name
    read -r point type source options <<<"$(sy_find_mount "$1")"
    if [[ -z ${options:-} ]]; then
        sy_log "no mount known at $1: the run has no tags of it"
        return 0
    fi
    point=$(printf '%b' "$point") source=$(printf '%b' "$source") options=$(printf '%b' "$options")
    sy_tag mount.type "$type"
    name=$(sy_mount_name "$type" "$source")
    sy_tag mount.name "$name"
    sy_tag mount.point "$point"
    sy_tag mount.source "$source"
    sy_tag mount.options "$options"
    sy_tag_nonempty mount.server "$(sy_mount_server "$source")"
    sy_tag_nonempty mount.version "$(sy_mount_version "$type" "$point" "$options")"
    case $name in
    lustre) sy_tag_lustre_layout "$1" ;;
    glusterfs) sy_tag_glusterfs_layout "$point" ;;
    orangefs) sy_tag_orangefs_layout "$1" ;;
    ceph) sy_tag_ceph_layout "$1" ;;
    esac
}

# Target, type, source and options of the mount a folder is in; blanks in them as \x20.
sy_find_mount() { # <folder>
    findmnt --first-only --noheadings --raw --output TARGET,FSTYPE,SOURCE,OPTIONS --target "$1"
}

sy_mount_option() { # <key> <options>
    local rest=",$2,"
    rest=${rest#*,"$1"=}
    printf '%s' "${rest%%,*}"
}

# The file system's usual name, whichever of its clients has mounted it. CVMFS and OrangeFS have the
# plain type `fuse`: only the source names them (pvfs2fuse#tcp://h:3334/orangefs).
sy_mount_name() { # <type> <source>
    case $1 in
    nfs*) printf nfs ;;
    pvfs2 | fuse.pvfs2* | fuse.orangefs*) printf orangefs ;;
    fuse.ceph*) printf ceph ;;
    beegfs*) printf beegfs ;;
    fuse)
        case $2 in
        cvmfs2 | cernvmfs) printf cvmfs ;;
        pvfs2fuse#*) printf orangefs ;;
        *) printf fuse ;;
        esac
        ;;
    fuse.*) printf '%s' "${1#fuse.}" ;;
    *) printf '%s' "$1" ;;
    esac
}

# Who serves it, as the source names it: srv:/a (NFS, Ceph), 10.0.0.1@tcp:10.0.0.2@tcp:/work (Lustre),
# tcp://h:3334/orangefs, //h/share (SMB), h:volume (GlusterFS). Nothing of a local one.
sy_mount_server() { # <source>
    local rest
    case $1 in
    *://* | //*) rest=${1#*//} && printf '%s' "${rest%%/*}" ;;
    /*) ;;
    *:/*) printf '%s' "${1%:/*}" ;;
    *:*) printf '%s' "${1%:*}" ;;
    esac
}

# NFS and SMB: of the protocol. Lustre (a file of its own since 2.10, `lustre: 2.8.0` before) and
# GlusterFS: of the client.
sy_mount_version() { # <type> <point> <options>
    local file line
    [[ ,$3 != *,vers=* ]] || sy_mount_option vers "$3"
    case $1 in
    lustre)
        for file in "${SY_MOUNT_ROOT:-}"/sys/fs/lustre/version "${SY_MOUNT_ROOT:-}"/proc/fs/lustre/version; do
            { read -r line <"$file"; } 2>/dev/null && printf '%s' "${line#lustre: }" && return
        done
        ;;
    fuse.glusterfs)
        sed -nE 's/.*"Package Version": "([^"]*)".*/\1/p' "${SY_MOUNT_ROOT:-}$2/.meta/version" 2>/dev/null
        ;;
    esac
}

# Of the folder itself (-d): new files in it are laid out so. Without -d lfs lists what is in it.
sy_tag_lustre_layout() { # <folder>
    sy_tag_nonempty mount.stripe_count "$(lfs getstripe -d -c -- "$1" 2>/dev/null)"
    sy_tag_nonempty mount.stripe_size_bytes "$(lfs getstripe -d -S -- "$1" 2>/dev/null)"
}

# A brick is a folder of a server; this client has a connection to each.
sy_tag_glusterfs_layout() { # <mount point>
    local -a bricks
    sy_lines bricks compgen -G "${SY_MOUNT_ROOT:-}$1/.meta/graphs/active/*-client-*/private"
    ((${#bricks[@]} == 0)) || sy_tag mount.bricks "${#bricks[@]}"
}

# Of a new, empty file, which is removed: folders of Ceph and OrangeFS have no layout that all can read.
sy_tag_orangefs_layout() { # <folder>
    local file text
    file=$(mktemp -- "$1/layout-XXXXXXXX") || return 0
    text=$(pvfs2-viewdist -f "$file" 2>/dev/null)
    rm -f -- "$file"
    if [[ $text =~ "Number of datafiles/servers = "([0-9]+) ]]; then
        sy_tag mount.stripe_count "${BASH_REMATCH[1]}"
        # Of the distributions simple_stripe and twod_stripe; others have no single size.
        [[ ! $text =~ strip_size:([0-9]+) ]] || sy_tag mount.stripe_size_bytes "${BASH_REMATCH[1]}"
    else
        sy_tag mount.stripe_count "not known: pvfs2-viewdist is missing, or finds no entry in /etc/pvfs2tab"
    fi
}

# In Ceph's own words: a stripe count of 1 does not mean one server, since each object has its own.
sy_tag_ceph_layout() { # <folder>
    local file text
    file=$(mktemp -- "$1/layout-XXXXXXXX") || return 0
    text=$(getfattr --absolute-names --only-values -n ceph.file.layout "$file" 2>/dev/null)
    rm -f -- "$file"
    sy_tag mount.layout "${text:-not known: getfattr (Debian: attr) is missing, or reads no ceph.file.layout}"
}
