#!/bin/bash
# Counters of the clients of network file systems. Part of steelyard.sh; for benchmarks to call.
#
# They are read before and after the measured program, and are those of the node's client, so they include
# what other processes do there meanwhile. Read are NFS, Lustre, GlusterFS and OrangeFS; of other network
# file systems the tag mount.counters says that they are not read. A local file system has none. A counter
# that cannot be read fails no run.

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
