#!/bin/bash
# What the client side of a network file system counts. Part of steelyard.sh; for benchmarks to call.

# ATTEMPT/mount.CLIENT.before and .after, read by jobscripts/mounts.py. With the first goes the tag
# mount.counters: from where they are, or `not known: ` and why there are none. A local file system
# has neither: what went to its storage the record has.
sy_save_mount_counters() { # <folder> <before|after>
    local point type source from='' why=''
    local -r to=$SY_ATTEMPT_DIR/mount.$SY_CLIENT.$2
    read -r point type source _ <<<"$(sy_find_mount "$1")"
    point=$(printf '%b' "${point:-}")
    case ${type:-} in
    nfs | nfs4) sy_print_mountstats "$point" ;;
    lustre) sy_print_lustre_stats "$1" ;;
    fuse.glusterfs) sy_print_glusterfs_stats "$point" ;;
    pvfs2) sy_print_orangefs_stats ;;
    cifs | smb3 | ceph | beegfs* | gpfs | afs | 9p | wekafs) why="those of a $type client are not read" ;;
    fuse | fuse.*) why="those of a $type client are not read, and Linux charges the run with no bytes read there" ;;
    esac >"$to"
    [[ -s $to ]] || rm -f -- "$to"
    [[ $2 == before && -n $from$why ]] || return 0
    [[ -z $why ]] || sy_log "no counters of $(sy_mount_name "$type" "$source"): $why"
    sy_tag mount.counters "${why:+not known: }${why:-$from}"
}

# Each of these prints what was counted and sets `from`, or sets `why`; both are the caller's.

# The part of mountstats that is about one mount point (a blank in it is written \040).
sy_print_mountstats() { # <mount point>
    from=/proc/self/mountstats
    awk -v point="${1// /\\\\040}" '
        /^device / { ours = 0; for (i = 2; i < NF; i++) if ($i == "on" && $(i + 1) == point) ours = 1 }
        ours { print }' "${SY_MOUNT_ROOT:-}$from" || why="$from cannot be read"
}

# Of the Lustre file system that a folder is in (llite): calls, and what was read ahead. /proc before
# Lustre 2.12, then /sys/kernel/debug, which only root may enter; else lctl, which reads the same.
sy_print_lustre_stats() { # <folder>
    local name file
    name=$(lfs getname -- "$1" 2>/dev/null) name=${name%% *}
    if [[ -z $name ]]; then
        why="lfs getname does not know $1"
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
        why="llite.$name.stats cannot be read (since Lustre 2.12 by root only)"
    fi
}

# What the connections to the bricks carried. A folder that the client itself shows, without files.
sy_print_glusterfs_stats() { # <mount point>
    from=$1/.meta/graphs/active
    cat -- "${SY_MOUNT_ROOT:-}$from"/*-client-*/private 2>/dev/null ||
        why="$from/*-client-*/private cannot be read"
}

# Calls of the whole node since its kernel's module was loaded; bytes it does not count.
sy_print_orangefs_stats() {
    local file
    from=/sys/fs/orangefs/stats
    for file in reads writes; do
        cat -- "${SY_MOUNT_ROOT:-}$from/$file" >/dev/null 2>&1 || why="$from/$file cannot be read"
    done
    [[ -z $why ]] || return
    for file in reads writes; do
        printf 'orangefs %s %s\n' "$file" "$(<"${SY_MOUNT_ROOT:-}$from/$file")"
    done
}
