#!/bin/bash
# Leftovers on a node of runs that were killed with SIGKILL. They are removed by the run itself at its
# end, by the plugin at the job's end, and by the next run. Part of steelyard.sh; on a node also the
# program steelyard-left.
#
# Before root's launchers make a kernel resource, they write it into a mark: a file of SY_LEFTOVER_DIR,
# steelyard-PID-START, that only root can write. Its lines are a word and a value:
#   owner      PID START PID-NAMESPACE BOOT NODE JOB, of the shell that made it (sy_leftover_format_owner)
#   network    the network namespace (its inode) that links, routes and rules are in
#   link       a device; route: NETWORK via ADDRESS dev DEVICE; accept: a device that may forward
#   forwarding a device whose forwarding was off; space: a network namespace of ip-netns(8)
#   cgroup     a folder; folder: a folder of systemd-nspawn; container: docker or podman, its name
#   lxc        a container of LXC, which makes cgroups of that name in each hierarchy
#   port       a bridge of another mark that this run uses
#   phys       SPACE DEVICE INDEX STATE [SETTING=VALUE]…: a device of the node that is moved into that
#              network namespace; it is returned and its settings are restored
# A mark is stale when its owner has ended: by boot, process id and start. Then its resources are removed,
# and nothing else; the mark is removed last, when none of them exists.
# Each user's folders (BASE/steelyard.RUN.CLIENT.XXXXXXXX) have a note,
# BASE/.steelyard.RUN.CLIENT.XXXXXXXX, with the owner's line; they are removed with their user's rights.

SY_LEFTOVER_DIR=/run/steelyard-containers

# --- owners ----------------------------------------------------------------------------------

# Print PID START PID-NAMESPACE BOOT NODE JOB of this shell. HOSTNAME may be that of a login node.
sy_leftover_format_owner() {
    local boot node job
    local -a stat=()
    # Not by < <(…): the shell would not wait for that process, and the record reports processes that
    # still run at a job's end.
    read -r job <<<"$(sy_every_scheduler job_id)"
    job=${job:--}
    sy_read_process_stat "$$" && read -r boot </proc/sys/kernel/random/boot_id &&
        read -r node </proc/sys/kernel/hostname || return
    printf '%s %s %s %s %s %s\n' "$$" "${stat[19]}" "$(stat -L -c %i /proc/self/ns/pid)" "$boot" "$node" \
        "${job//[^A-Za-z0-9._[\]-]/}"
}

# Set the caller's array `stat` to the fields of /proc/PID/stat (proc(5)) from the third on, the state;
# [19] is the 22nd, the start in clock ticks after boot. The name before them may contain a newline.
sy_read_process_stat() { # <pid>
    local text=''
    { IFS= read -r -d '' text <"/proc/$1/stat"; } 2>/dev/null
    read -r -a stat <<<"${text##*) }"
    ((${#stat[@]} >= 20))
}

# Whether the process still runs; a zombie does not.
sy_process_is_running() { # <pid:start>
    local -a stat=()
    [[ $1 =~ ^[0-9]+:[0-9]+$ ]] || return 0
    sy_read_process_stat "${1%:*}" && [[ ${stat[0]} != [ZX] && ${stat[19]} == "${1#*:}" ]]
}

# Whether the owner is known to have ended; false for an owner of another node or PID namespace.
sy_leftover_owner_has_ended() { # <pid> <start> <pid namespace> <boot> <node>
    local boot node
    read -r boot </proc/sys/kernel/random/boot_id && read -r node </proc/sys/kernel/hostname || return
    [[ ${5:-} == "$node" && $4 =~ ^[0-9a-f-]{36}$ ]] || return 1
    [[ $4 == "$boot" ]] || return 0
    [[ $3 == "$(stat -L -c %i /proc/self/ns/pid)" ]] && ! sy_process_is_running "$1:$2"
}

# --- writing marks ---------------------------------------------------------------------------

# Run a function under the lock of all marks.
sy_leftover_run_locked() { # <function> <argument>...
    local fd code
    sy_leftover_make_mark_folder && exec {fd}>>"$SY_LEFTOVER_DIR/.lock" || return
    if flock -w 60 "$fd"; then
        "$@"
        code=$?
    else
        code=1
        printf 'steelyard: %s is held by another for more than 60 s: fuser -v there says by whom\n' \
            "$SY_LEFTOVER_DIR/.lock" >&2
    fi
    exec {fd}>&-
    return "$code"
}

sy_leftover_make_mark_folder() {
    [[ -d $SY_LEFTOVER_DIR ]] || mkdir -m 700 -- "$SY_LEFTOVER_DIR" || return
    [[ -O $SY_LEFTOVER_DIR && ! -L $SY_LEFTOVER_DIR ]]
}

# Mark a resource before it is made. The owner's lines are one write: a mark has both, or is empty.
sy_leftover_mark() { # <word> <value>
    local -r mark=$SY_LEFTOVER_DIR/$SY_LAUNCHER_NAME
    if [[ ! -e $mark ]]; then
        sy_leftover_make_mark_folder && printf 'owner %s\nnetwork %s\n' "$(sy_leftover_format_owner)" \
            "$(stat -L -c %i /proc/self/ns/net)" >"$mark" || return
    fi
    printf '%s %s\n' "$1" "$2" >>"$mark"
}

# --- removing marks --------------------------------------------------------------------------

# Remove this run's resources, at its end.
sy_leftover_remove_own() {
    local -a removed=()
    ((EUID != 0)) || [[ ! -e $SY_LEFTOVER_DIR/${SY_LAUNCHER_NAME:--} ]] ||
        sy_leftover_run_locked sy_leftover_remove_marked "$SY_LEFTOVER_DIR/$SY_LAUNCHER_NAME"
}

# Remove resources of runs that have ended, and print a line for each.
sy_leftover_sweep() {
    ((EUID == 0)) && compgen -G "$SY_LEFTOVER_DIR/steelyard-*-*" >/dev/null || return 0
    sy_leftover_run_locked sy_leftover_sweep_locked
}

sy_leftover_sweep_locked() {
    local mark owner
    local -a removed
    find "$SY_LEFTOVER_DIR" -name 'steelyard-*' -empty -mmin +10 -delete
    for mark in "$SY_LEFTOVER_DIR"/steelyard-*-*; do
        sy_leftover_mark_is_stale "$mark" || continue
        removed=() owner=$(sed -n '1s/^owner //p' "$mark")
        sy_leftover_remove_marked "$mark"
        ((${#removed[@]} == 0)) || sy_leftover_report "$owner" "${removed[@]}"
    done
}

sy_leftover_report() { # <owner's line> <word and value of a resource>...
    local resource list='' owner=${1##* }
    [[ $owner != - ]] && owner="job $owner" || owner='a run'
    owner+=" (process ${1%% *}) was killed"
    for resource in "${@:2}"; do
        if [[ $resource == phys\ * ]]; then
            resource=${resource#* * }
            printf '%s and had the device %s: given back\n' "$owner" "${resource%% *}"
        else
            list+=${list:+, }$resource
        fi
    done
    [[ -z $list ]] || printf '%s and left here: %s: removed\n' "$owner" "$list"
}

# Whether the owner has ended and no other run uses the mark's bridge.
# shellcheck disable=SC2094 # only read
sy_leftover_mark_is_stale() { # <mark>
    local word value other
    { read -r word value <"$1" && [[ $word == owner ]]; } 2>/dev/null || return
    # shellcheck disable=SC2086 # the owner's fields
    sy_leftover_owner_has_ended $value || return
    while read -r word value; do
        [[ $word == link ]] || continue
        while IFS= read -r other; do
            [[ $other == "$1" ]] || sy_leftover_mark_is_stale "$other" || return 1
        done < <(grep -lsx "port $value" "$SY_LEFTOVER_DIR"/steelyard-*-*)
    done <"$1"
}

# Remove a mark's resources, the last made first, and the mark. False: a resource, and so the mark, still
# exists. Adds to `removed` of the caller.
sy_leftover_remove_marked() { # <mark>
    local word value i network result=0
    local -a lines=()
    network=$(sy_leftover_network_state "$1") || return
    mapfile -t lines <"$1" || return
    for ((i = ${#lines[@]} - 1; i >= 0; i--)); do
        word=${lines[i]%% *} value=${lines[i]#* }
        case $network:$word in
        *:space | *:cgroup | *:lxc | *:folder | *:container) sy_leftover_is_valid "$word" "$value" || continue ;;
        here:*) sy_leftover_is_valid "$word" "$value" || continue ;;
        *) continue ;;
        esac
        sy_leftover_exists "$word" "$value" || continue
        sy_leftover_remove_resource "$word" "$value"
        if sy_leftover_exists "$word" "$value"; then
            result=1
            [[ $word != phys ]] || break # removing its namespace would destroy it
        else
            removed+=("$word $value")
        fi
    done
    ((result)) || rm -f -- "$1"
    return "$result"
}

# Print the state of a mark's network namespace: `here` (this one) or `gone` (destroyed, or of an earlier
# boot). False: it is another existing namespace, whose devices are removed from inside of it.
sy_leftover_network_state() { # <mark>
    local inode boot
    read -r boot </proc/sys/kernel/random/boot_id || return
    inode=$(sed -n '2s/^network //p' "$1")
    if ! sed -n '1s/^owner //p' "$1" | grep -qwF -- "$boot"; then
        printf 'gone'
    elif [[ $inode == "$(stat -L -c %i /proc/self/ns/net)" ]]; then
        printf 'here'
    elif stat -L -c %i /proc/[0-9]*/ns/net /run/netns/* 2>/dev/null | grep -qx -- "$inode"; then
        return 1
    else
        printf 'gone'
    fi
}

# --- folders ---------------------------------------------------------------------------------

# Make a note and then its folder. Prints the folder's path.
sy_leftover_make_folder() { # <base> <name>
    local note
    note=$(mktemp -- "$1/.$2.XXXXXXXX") && sy_leftover_format_owner >"$note" &&
        mkdir -m 700 -- "$1/${note##*/.}" && printf '%s' "$1/${note##*/.}"
}

sy_leftover_remove_folder() { # <path>
    rm -rf --one-file-system -- "$1" && rm -f -- "${1%/*}/.${1##*/}"
}

# Remove this user's folders of runs that have ended, and print a line for each.
sy_leftover_sweep_folders() { # <base>
    local note folder
    while IFS= read -r note; do
        folder=$1/${note##*/.}
        [[ -z $note ]] || ! sy_leftover_remove_folder "$folder" || printf '%s of a run that was killed: removed\n' "$folder"
    done <<<"$(sy_leftover_list_notes "$1")"
}

# Print the notes of this user's folders whose runs have ended.
sy_leftover_list_notes() { # <base>
    local note folder owner
    for note in "$1"/.steelyard.*.????????; do
        folder=$1/${note##*/.}
        owner=
        [[ ! -f $note || -L $note || ! -O $note ]] || read -r owner <"$note"
        [[ -n $owner ]] || continue
        [[ ! -e $folder && ! -L $folder ]] || [[ -d $folder && ! -L $folder && -O $folder ]] || continue
        # shellcheck disable=SC2086 # the owner's fields
        sy_leftover_owner_has_ended $owner && ! sy_leftover_folder_is_in_use "$folder" && printf '%s\n' "$note"
    done
} 2>/dev/null

# Whether a process works in the folder: a benchmark may outlive its client.
sy_leftover_folder_is_in_use() { # <folder>
    local cwd
    local -r real=$(cd -P -- "$1" 2>/dev/null && pwd -P)
    while [[ -n $real ]] && IFS= read -r cwd; do
        [[ $cwd != "$real" && $cwd != "$real"/* ]] || return 0
    done < <(readlink -- /proc/[0-9]*/cwd)
    return 1
}

# --- steelyard-left --------------------------------------------------------------------------

sy_leftover_print_usage() {
    cat <<'END'
usage: steelyard-left sweep [--job ID [--user UID]] | list | folders [--job ID]

Leftovers on this node of steelyard's runs that were killed with SIGKILL.

  sweep    root: removes devices, network namespaces, routes, rules of the firewall, cgroups and
           containers that marks in /run/steelyard-containers name, and folders of runs in /tmp, each
           with its owner's rights; gives the node its devices back that containers had. Only for
           runs that have ended. Prints what it removed
  list     prints the same and removes nothing
  folders  removes the folders in /tmp of the user who runs it

  --job ID    a job that ends now: waits up to 5 s for its last processes
  --user UID  the job's user: folders of other users are kept

example: steelyard-left list
END
}

# Wait up to 5 s for the last processes of a job that ends.
sy_leftover_wait_for_job() { # <job> <file>...
    local file owner try
    for ((try = 0; try < 50; try++)); do
        for file in "${@:2}"; do
            owner=
            [[ ! -f $file || -L $file ]] || read -r owner <"$file"
            [[ -n $owner && ${owner##* } == "$1" ]] || continue
            # shellcheck disable=SC2086 # the owner's fields
            sy_leftover_owner_has_ended ${owner#owner } || { sleep 0.1 && continue 2; }
        done
        return
    done 2>/dev/null
}

# Run a command with the rights of each user that has folders in /tmp. A user may stop a process that
# has their rights: it is killed after some seconds.
sy_leftover_run_as_users() { # <uid; empty: all> <command> <argument>...
    local uid code
    while read -r uid; do
        if ((uid == 0)); then
            sy_leftover_main "${@:2}"
        else
            # shellcheck disable=SC2016 # for the shell inside
            timeout --kill-after=1 7 setpriv --reuid="$uid" --regid=65534 --clear-groups -- \
                "$BASH" -c '. "$1" "${@:2}"' steelyard-left "${BASH_SOURCE[0]}" "${@:2}"
            code=$?
            ((code != 124 && code != 137)) || # of timeout(1)
                printf 'folders of user %s in /tmp were not all looked at within 7 s\n' "$uid"
        fi
    done < <(stat -c %u -- /tmp/.steelyard.*.???????? 2>/dev/null | sort -u | grep -x -- "${1:-.*}")
}

sy_leftover_list() {
    local mark note
    for mark in "$SY_LEFTOVER_DIR"/steelyard-*-*; do
        ! sy_leftover_mark_is_stale "$mark" ||
            printf '%s: %s\n' "$mark" "$(sed '1,2d' "$mark" | paste -sd, | sed 's/,/, /g')"
    done
    while IFS= read -r note; do
        printf '/tmp/%s\n' "${note##*/.}"
    done < <(sy_leftover_list_notes /tmp)
}

sy_leftover_main() { # <command> <argument>...
    local -r command=${1:-} job=${3:-} user=${5:-}
    [[ $# == 1 || ($# == 3 && $2 == --job && $command != list) ||
        ($# == 5 && $2 == --job && $4 == --user && $user =~ ^[0-9]+$ && $command == sweep) ]] || {
        sy_leftover_print_usage >&2
        return 2
    }
    case $command in
    sweep)
        [[ -z $job ]] || sy_leftover_wait_for_job "$job" "$SY_LEFTOVER_DIR"/steelyard-*-*
        sy_leftover_sweep
        sy_leftover_run_as_users "$user" folders ${job:+--job "$job"}
        ;;
    folders)
        [[ -z $job ]] || sy_leftover_wait_for_job "$job" /tmp/.steelyard.*.????????
        sy_leftover_sweep_folders /tmp
        ;;
    list) sy_leftover_list ;;
    --help | -h) sy_leftover_print_usage ;;
    *)
        sy_leftover_print_usage >&2
        return 2
        ;;
    esac
}

if [[ ${0##*/} == steelyard-left ]]; then
    export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
    sy_leftover_main "$@"
    exit
fi
