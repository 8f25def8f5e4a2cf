#!/bin/bash
# The command that starts a container, as far as it is the same for all kinds: mounts, variables, /etc/hosts,
# /dev/shm; limits and network of a container whose processes are children of this shell. Part of
# steelyard.sh; called by launcher.sh and launchers/KIND.sh.
# shellcheck disable=SC2034,SC2153 # SY_* are those of launcher.sh and launchers/

# Set SY_LAUNCHER_COMMAND, which runs run.sh in a container with this shell's input and output.
sy_launcher_make_command() {
    SY_LAUNCHER_INSIDE=(bash "${SY_LAUNCHER_SCRIPT:-$SY_STUDY_DIR/runs/$SY_RUN_ID/run.sh}")
    SY_LAUNCHER_COMMAND=()
    sy_launcher_collect_paths
    sy_kind command && SY_LAUNCHER_COMMAND=(env SY_ROLE=inside "${SY_LAUNCHER_COMMAND[@]}")
}

# --- mounts and variables --------------------------------------------------------------------

# Set SY_LAUNCHER_PATHS, the paths to mount under the same name: the study, the scratch folder, our
# programs, and paths that parameters name. System folders are the image's.
sy_launcher_collect_paths() {
    local name path
    SY_LAUNCHER_PATHS=("$SY_STUDY_DIR" "$SY_SCRATCH" ${SY_PEERS:+"$SY_PEERS"})
    path=${SY_LAUNCHER_FOLDER:-/}
    sy_launcher_is_system_folder "$path" || sy_launcher_add_path "$path"
    for name in "${!STEELYARD_@}"; do
        path=${!name}
        [[ $path == /* && -f $path ]] || continue
        # Our programs start others of the same folder, and preload libraries of ../lib.
        [[ ! -f ${path%/*/*}/lib/libsteelyard-mpiprof.so ]] || sy_launcher_add_path "${path%/*/*}/lib"
        sy_launcher_is_system_folder "${path%/*}" || path=${path%/*}
        sy_launcher_add_path "$path"
    done
    sy_launcher_add_named_paths "${SY_WORDS_ENV[*]-}"
    for name in "${!SY_PARAM_@}"; do
        path=${!name}
        if [[ $path != /* || ! -e $path ]]; then
            sy_launcher_add_named_paths "$path"
        elif [[ -d $path ]] && sy_launcher_is_system_folder "$path"; then
            sy_log "$path is the container's own, not the node's"
        else
            sy_launcher_add_path "$path"
        fi
    done
}

# Add the absolute paths in a command line, except for those of the image's system folders.
sy_launcher_add_named_paths() { # <text>
    local word
    local -a words
    IFS=$' \t\n=;|&<>(),"\'' read -r -d '' -a words <<<"$1" || :
    for word in ${words[@]+"${words[@]}"}; do
        [[ $word != /* || ! -e $word ]] || sy_launcher_is_system_folder "$word" || sy_launcher_add_path "$word"
    done
}

sy_launcher_add_path() { # <path>
    local path
    for path in "${SY_LAUNCHER_PATHS[@]}"; do
        [[ $path != "$1" ]] || return 0
    done
    SY_LAUNCHER_PATHS+=("$1")
}

sy_launcher_is_system_folder() { # <folder>
    case ${1%/} in
    '' | /usr/libexec/* | /usr/local/libexec/*) [[ -z ${1%/} ]] ;;
    /bin | /bin/* | /sbin | /sbin/* | /lib* | /usr | /usr/* | /etc | /etc/*) ;;
    /proc | /proc/* | /sys | /sys/* | /dev | /dev/* | /run | /var | /var/tmp) ;;
    *) return 1 ;;
    esac
}

# Print the names of the variables that the container gets: the run's, and those of MPI and numerical
# libraries.
sy_launcher_list_variables() {
    local name
    while read -r name; do
        case $name in
        SY_ROLE) ;; # the container has a different role
        SY_* | STEELYARD_* | LC_ALL | OMP_* | OMPI_MCA_* | MKL_* | OPENBLAS_* | BLIS_*)
            printf '%s\n' "$name"
            ;;
        esac
    done < <(compgen -e)
}

# Write an /etc/hosts with the container's name, and print its path. In an image without one mpirun
# would wait ten seconds for a name server.
sy_launcher_write_hosts() {
    local -r file=$SY_ATTEMPT_DIR/hosts.$SY_CLIENT${SY_PEERS:+.$SY_PEER_NODE.$SY_PEER}
    local address=127.0.1.1
    [[ -z ${SY_NETWORK_NS:-} ]] || address=$(sy_network_address "$SY_PEER_NODE" "$((SY_PEER + 1))")
    printf '127.0.0.1 localhost\n::1 localhost\n%s %s %s\n' "$address" "$SY_LAUNCHER_NAME" "$HOSTNAME" >"$file" &&
        printf '%s' "$file"
}

# Quote a field of the comma-separated value of --mount as RFC 4180 does.
sy_launcher_quote_field() { # <key=value>
    local text=${1//\"/\"\"}
    printf '"%s"' "$text"
}

# Print the size of /dev/shm, through which MPI ranks communicate: half of the memory, as on a node.
sy_launcher_shm_bytes() {
    local key value
    while read -r key value _; do
        [[ $key != MemTotal: ]] || break
    done </proc/meminfo
    value=$((value * 512))
    if ((${SY_LAUNCHER_MEMORY_BYTES:-value} < value)); then
        value=$SY_LAUNCHER_MEMORY_BYTES
    fi
    printf '%d' "$value"
}

# --- children of this shell -------------------------------------------------------------------

# Apply processors, memory limit and private network to a launcher whose processes are children of this
# shell. Memory and network need root.
sy_launcher_apply_limits() {
    sy_launcher_pin || return
    if [[ -n ${SY_NETWORK_NS:-} ]]; then
        sy_launcher_enter_network
    elif [[ $SY_LAUNCHER_NETWORK == bridge ]] && ((EUID == 0)); then
        sy_network_make_veth || return
        SY_LAUNCHER_COMMAND=(nsenter "--net=/run/netns/$SY_LAUNCHER_NAME" "${SY_LAUNCHER_COMMAND[@]}")
    fi
}

sy_launcher_enter_network() {
    SY_LAUNCHER_COMMAND=(nsenter "--net=/run/netns/$SY_NETWORK_NS" "${SY_LAUNCHER_COMMAND[@]}")
}

# Apply the processors and, for root, the memory limit.
sy_launcher_pin() {
    SY_LAUNCHER_COMMAND=(taskset --cpu-list "$SY_LAUNCHER_CPUSET" "${SY_LAUNCHER_COMMAND[@]}")
    [[ -n ${SY_LAUNCHER_MEMORY_BYTES:-} ]] && ((EUID == 0)) || return 0
    sy_launcher_make_cgroup || return
    # shellcheck disable=SC2016
    SY_LAUNCHER_COMMAND=(sh -c 'echo $$ >"$0" && exec "$@"' "$SY_LAUNCHER_CGROUP/cgroup.procs"
        "${SY_LAUNCHER_COMMAND[@]}")
}
