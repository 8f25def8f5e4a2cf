#!/bin/bash
# The file system that a benchmark measures: its tags, the counters of network file systems (also of CVMFS
# clients), and the work folder on it. Part of steelyard.sh; for benchmarks to call.
# Files of the kernel and of mounts are read below SY_MOUNT_ROOT (empty: /; a recorded tree in tests).
#
# Tags say what was measured: the mount, its server, options and version, and the layout of files on
# servers. A layout that cannot be read is tagged `not known:` with the reason, and a program that queries
# the servers for it is killed after 5 s: no tag fails a run. An unknown mount is logged and has no tags.
#
# Counters are read before and after the measured program, and are those of the node's client, so they
# include what other processes do there meanwhile. Read are NFS, Lustre, GlusterFS and OrangeFS; of other
# network file systems the tag mount.counters says that they are not read. A local file system has none. A
# counter that cannot be read fails no run. Nothing is mounted, and no setting of a file system is changed.
# CVMFS counters are extended attributes of a repository's folder,
# and count what its client has fetched for all processes of the node. A folder that is no mounted
# repository fails the run with 3: the study names it, so figures are expected.

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

# Write ATTEMPT/mount.CLIENT.before or .after, read by jobscripts/mounts.py. The first reading also tags
# mount.counters: their file, or `not known: ` and the reason. A local file system has neither: the
# record has the bytes of its storage.
sy_save_mount_counters() { # <folder> <before|after>
    local point type source from='' reason=''
    local -r to=$SY_ATTEMPT_DIR/mount.$SY_CLIENT.$2
    read -r point type source _ <<<"$(sy_find_mount "$1")"
    point=$(printf '%b' "${point:-}")
    case ${type:-} in
    nfs | nfs4) sy_print_mountstats "$point" ;;
    lustre) sy_print_lustre_stats "$1" ;;
    fuse.glusterfs) sy_print_glusterfs_stats "$point" ;;
    pvfs2) sy_print_orangefs_stats ;;
    cifs | smb3 | ceph | beegfs* | gpfs | afs | 9p | wekafs) reason="those of a $type client are not read" ;;
    fuse | fuse.*) reason="those of a $type client are not read, and Linux charges the run with no bytes read there" ;;
    esac >"$to"
    [[ -s $to ]] || rm -f -- "$to"
    [[ $2 == before && -n $from$reason ]] || return 0
    [[ -z $reason ]] || sy_log "no counters of $(sy_mount_name "$type" "$source"): $reason"
    sy_tag mount.counters "${reason:+not known: }${reason:-$from}"
}

# Each of these prints counters and sets `from`, or sets `reason`; both are the caller's.

# Print the section of mountstats of one mount point (a blank in it is written \040).
sy_print_mountstats() { # <mount point>
    from=/proc/self/mountstats
    awk -v point="${1// /\\\\040}" '
        /^device / { ours = 0; for (i = 2; i < NF; i++) if ($i == "on" && $(i + 1) == point) ours = 1 }
        ours { print }' "${SY_MOUNT_ROOT:-}$from" || reason="$from cannot be read"
}

# Print calls and read-ahead of the Lustre file system that has the folder (llite): from /proc before
# Lustre 2.12, then from /sys/kernel/debug, which only root can read; else by lctl, which reads the same.
sy_print_lustre_stats() { # <folder>
    local name file
    name=$(lfs getname -- "$1" 2>/dev/null) name=${name%% *}
    if [[ -z $name ]]; then
        reason="lfs getname does not know $1"
        return
    fi
    for file in "/proc/fs/lustre/llite/$name" "/sys/kernel/debug/lustre/llite/$name"; do
        from=$file/stats
        cat -- "${SY_MOUNT_ROOT:-}$file/stats" 2>/dev/null || continue
        cat -- "${SY_MOUNT_ROOT:-}$file/read_ahead_stats" 2>/dev/null
        return
    done
    from="lctl get_param llite.$name.stats"
    if lctl get_param -n "llite.$name.stats" 2>/dev/null; then
        lctl get_param -n "llite.$name.read_ahead_stats" 2>/dev/null
    else
        reason="llite.$name.stats cannot be read (since Lustre 2.12 by root only)"
    fi
}

# Print the counters of the connections to the bricks, from a virtual folder of the client.
sy_print_glusterfs_stats() { # <mount point>
    from=$1/.meta/graphs/active
    cat -- "${SY_MOUNT_ROOT:-}$from"/*-client-*/private 2>/dev/null ||
        reason="$from/*-client-*/private cannot be read"
}

# Print calls of the whole node since the kernel module was loaded; it counts no bytes.
sy_print_orangefs_stats() {
    local file
    from=/sys/fs/orangefs/stats
    for file in reads writes; do
        cat -- "${SY_MOUNT_ROOT:-}$from/$file" >/dev/null 2>&1 || reason="$from/$file cannot be read"
    done
    [[ -z $reason ]] || return
    for file in reads writes; do
        printf 'orangefs %s %s\n' "$file" "$(<"${SY_MOUNT_ROOT:-}$from/$file")"
    done
}

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

# Write ATTEMPT/cvmfs.CLIENT.before or .after, read by jobscripts/cvmfs.py: extended attributes of a
# repository's folder, read by Python since getfattr may be missing. The client's version is a tag.
sy_save_cvmfs_counters() { # <before[.N]|after[.N]> <folder>...
    local -r to=$SY_ATTEMPT_DIR/cvmfs.$SY_CLIENT.$1
    shift
    (($# > 0)) || return 0
    "${STEELYARD_PYTHON:-python3}" -c '
import os, sys
for folder in sys.argv[1:]:
    os.listdir(folder)  # an automounter mounts it now
    for key in ("rx", "ndownload", "nopen", "nioerr", "hitrate"):
        print(folder, key, os.getxattr(folder, "user." + key).decode().strip("\0 \n"))
' "$@" >"$to" 2>"$to.err" && sy_tag_cvmfs_version "$1" && return
    sy_log "cvmfs = $*: expected folders of mounted CVMFS repositories, found: $(tail -n 1 -- "$to.err")"
    return 3
}

# Tag the version, once. All repositories have the same client program, so the first one is enough.
sy_tag_cvmfs_version() { # <folder>
    ! grep -qs '^cvmfs.version=' "$SY_ATTEMPT_DIR/tags.$SY_CLIENT" || return 0
    sy_tag_nonempty cvmfs.version "$("${STEELYARD_PYTHON:-python3}" -c '
import os, sys
print(os.getxattr(sys.argv[1], "user.version").decode().strip("\0 \n"))
' "$1" 2>/dev/null)"
}
