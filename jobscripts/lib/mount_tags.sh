#!/bin/bash
# Tags of the file system that a benchmark measures. mount_counters.sh has the counters of network file
# systems. Part of steelyard.sh; for benchmarks to call.
# Files of the kernel and of mounts are read below SY_MOUNT_ROOT (empty: /; a recorded tree in tests).
#
# Tags say what was measured: the mount, its server, options and version, and the layout of files on
# servers. A layout that cannot be read is tagged `not known:` with the reason, and a program that queries
# the servers for it is killed after 5 s: no tag fails a run. An unknown mount is logged and has no tags.
# Nothing is mounted, and no setting of a file system is changed.

# Tag mount.type (as the kernel has it), mount.name (nfs, lustre, orangefs, glusterfs, ceph, beegfs,
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

# Print target, type, source and options of the mount that has a folder; blanks in them as \x20.
sy_find_mount() { # <folder>
    findmnt --first-only --noheadings --raw --output TARGET,FSTYPE,SOURCE,OPTIONS --target "$1"
}

sy_mount_option() { # <key> <options>
    local rest=",$2,"
    rest=${rest#*,"$1"=}
    printf '%s' "${rest%%,*}"
}

# Print the file system's usual name, for all of its clients. CVMFS and OrangeFS have the type `fuse`:
# only the source names them (pvfs2fuse#tcp://h:3334/orangefs).
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

# Print the server that the source names: srv:/a (NFS, Ceph), 10.0.0.1@tcp:10.0.0.2@tcp:/work (Lustre),
# tcp://h:3334/orangefs, //h/share (SMB), h:volume (GlusterFS). Nothing for a local file system.
sy_mount_server() { # <source>
    local rest
    case $1 in
    *://* | //*) rest=${1#*//} && printf '%s' "${rest%%/*}" ;;
    /*) ;;
    *:/*) printf '%s' "${1%:/*}" ;;
    *:*) printf '%s' "${1%:*}" ;;
    esac
}

# Print a version: of NFS and SMB the protocol's, of Lustre (`lustre: 2.8.0` until 2.9) and GlusterFS the
# client's.
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

# Run a program that reads from a file system's servers. It is killed where they do not answer, so that the
# run begins: exit code 137.
sy_run_limited() { # <command>...
    timeout -s KILL 5 "$@"
}

# Tag the layout of the folder itself (-d), which new files in it get. Without -d lfs lists its files.
sy_tag_lustre_layout() { # <folder>
    sy_tag_nonempty mount.stripe_count "$(sy_run_limited lfs getstripe -d -c -- "$1" 2>/dev/null)"
    sy_tag_nonempty mount.stripe_size_bytes "$(sy_run_limited lfs getstripe -d -S -- "$1" 2>/dev/null)"
}

# Tag the number of bricks, folders of servers: the client has a connection to each.
sy_tag_glusterfs_layout() { # <mount point>
    local -a bricks
    sy_lines bricks compgen -G "${SY_MOUNT_ROOT:-}$1/.meta/graphs/active/*-client-*/private"
    ((${#bricks[@]} == 0)) || sy_tag mount.bricks "${#bricks[@]}"
}

# Set `text` of the caller to what a program prints of a new, empty file, which is removed: an ordinary user
# cannot read the layout of a folder. Set `why` where no file can be made or the servers do not answer.
sy_read_new_file_layout() { # <folder> <command>...
    local file code
    file=$(LC_ALL=C sy_run_limited mktemp -- "$1/layout-XXXXXXXX" 2>&1)
    code=$?
    if ((code == 0)); then
        text=$(sy_run_limited "${@:2}" "$file" 2>/dev/null)
        code=$?
        sy_run_limited rm -f -- "$file"
    else
        why="no file can be made there: ${file##*: }"
    fi
    ((code != 137)) || why="the file system did not answer within 5 s"
}

# Tag the stripes of new files.
sy_tag_orangefs_layout() { # <folder>
    local text='' why=''
    sy_read_new_file_layout "$1" pvfs2-viewdist -f
    if [[ $text =~ "Number of datafiles/servers = "([0-9]+) ]]; then
        sy_tag mount.stripe_count "${BASH_REMATCH[1]}"
        # The distributions simple_stripe and twod_stripe have a single size, others do not.
        [[ ! $text =~ strip_size:([0-9]+) ]] || sy_tag mount.stripe_size_bytes "${BASH_REMATCH[1]}"
    else
        sy_tag mount.stripe_count "not known: ${why:-pvfs2-viewdist is missing, or finds no entry in /etc/pvfs2tab}"
    fi
}

# Tag Ceph's own text: a stripe count of 1 does not mean one server, since each object has its own.
sy_tag_ceph_layout() { # <folder>
    local text='' why=''
    sy_read_new_file_layout "$1" getfattr --absolute-names --only-values -n ceph.file.layout
    sy_tag mount.layout "${text:-not known: ${why:-getfattr (Debian: attr) is missing, or reads no ceph.file.layout}}"
}
