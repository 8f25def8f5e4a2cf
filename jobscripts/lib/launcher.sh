#!/bin/bash
# A client's container: the client starts it before the measured time, sends it commands, and ends it.
# Part of steelyard.sh; the kinds of containers are in launchers/ (launcher_interface.sh), processors and
# memory in launcher_limits.sh.
#
# Set by run.sh when the launcher is not `bare` (wrappers/launchers/launcher_grammar.py checks them):
#   SY_LAUNCHER             canonical text, docker:debian:12,cpus=2
#   SY_LAUNCHER_KIND        docker, podman, apptainer, lxc, systemd-nspawn, unshare
#   SY_LAUNCHER_IMAGE       image, container or root folder; empty for unshare
#   SY_LAUNCHER_NETWORK     host, bridge, macvlan, phys
#   SY_LAUNCHER_DEVICE      for phys: the node's device; not set: LXC's configuration names it
#   SY_LAUNCHER_CONTAINERS  clients on a node, each with a container; SY_CLIENTS is nodes times this
#   SY_LAUNCHER_ACROSS      containers of one client on each node (ranks=across); not set: it has one
#   SY_LAUNCHER_CPUS, SY_LAUNCHER_MEMORY_BYTES  of one container; not set: no limit
#   SY_LAUNCHER_LABEL       label by which leftover containers are found; not set: the study's folder
#   SY_LAUNCHER_FOLDER      one more folder to mount in the container
#
# Every client has one container, which executes the same run.sh with SY_ROLE=inside. Its stdin gets
# from the client, a line each: `run FOLDER` (below the attempt's; `.`: the attempt itself) and
# `signal NAME`. It answers `ready`, and for every `run`: `end CODE START END UPTIME UPTIME`. So
# neither the container's start nor its end is in the measured time. The container ends at the end of
# its input, also when the client was killed.
# shellcheck disable=SC2153 # SY_CLIENTS and SY_CLIENT are two things
# shellcheck disable=SC2034,SC2153 # SY_* are those of launcher.sh and launchers/

sy_has_launcher() {
    [[ ${SY_LAUNCHER_KIND:-bare} != bare ]]
}

# --- outside ---------------------------------------------------------------------------------

# Start the container of this client and wait until it is ready.
sy_launcher_start() {
    local begin begin_up end end_up answer elapsed_us
    sy_has_launcher || return 0
    sy_read_clocks begin begin_up
    sy_launcher_set_name
    sy_launcher_sweep_leftovers
    sy_peers_start && sy_launcher_choose_processors && sy_network_make_device &&
        sy_launcher_make_command && sy_launcher_start_container && sy_device_attach_lxc || return
    sy_peers_write_list "${answer%% *}" || return
    end=${EPOCHREALTIME//[^0-9]/}
    sy_uptime_at end_up "$end"
    sy_set_elapsed "$((end - begin))" "${begin_up:--}" "${end_up:--}"
    sy_tag launcher_start_s "$(sy_format_seconds "$elapsed_us")"
    sy_tag_launcher "${answer#* }"
    sy_launcher_check_limits "${answer%% *}"
}

# Start the container's command. Sets `answer` of the caller: its processors and its name.
sy_launcher_start_container() {
    # A write to a container that has ended must be an error; SIGPIPE would end this shell.
    trap '' PIPE
    coproc SY_LAUNCHED { sy_peers_close_liveness && exec "${SY_LAUNCHER_COMMAND[@]}"; }
    SY_LAUNCHER_PID=$!
    # Only this shell has the writing end open: the container's input ends with this shell.
    exec {SY_LAUNCHER_IN}<&"${SY_LAUNCHED[0]}"
    sy_launcher_read_answer ready && return
    sy_log "$SY_LAUNCHER did not start${SY_SIGNAL:+ before SIG$SY_SIGNAL came}$(sy_last_message "err.$SY_CLIENT")"
    return 1
}

# Set a name that is unique on this node.
sy_launcher_set_name() {
    local -a owner_fields
    read -r -a owner_fields <<<"$(sy_leftover_format_owner)"
    # shellcheck disable=SC2034 # for launchers/
    SY_LAUNCHER_OWNER=$$:${owner_fields[1]} SY_LAUNCHER_NAME=steelyard-$$-${owner_fields[1]}
}

# Remove leftovers of runs that were killed with SIGKILL: root's, and this user's containers of this study.
sy_launcher_sweep_leftovers() {
    local line
    while IFS= read -r line; do
        sy_log "$line"
    done < <(sy_leftover_sweep)
    sy_kind sweep
}

# Wait for an answer, and forward signals meanwhile; sets `answer` of the caller. False: the container
# has ended, or has not answered in time.
sy_launcher_read_answer() { # <word>
    local line='' chunk code deadline=$((1 << 62))
    # Only the benchmark has no limit of time.
    [[ $1 == end ]] || sy_set_time deadline "$((${SY_BARRIER_S:-120} * 1000000))"
    while true; do
        if [[ -n $SY_SIGNAL ]]; then
            [[ $1 != ready ]] || return 1
            sy_launcher_send "signal $SY_SIGNAL" || return
            SY_SIGNAL=
        fi
        chunk=''
        IFS= read -r -t 0.2 -u "$SY_LAUNCHER_IN" chunk
        code=$? line+=$chunk # a line may come in pieces
        if ((code == 0)); then
            answer=${line#"$1"} answer=${answer# }
            [[ $line != "$1" && $line != "$1 "* ]] || return 0
            line=''
        elif ((code <= 128)) || sy_is_past "$deadline"; then
            return 1
        fi
    done
}

sy_launcher_send() { # <line>
    [[ -n ${SY_LAUNCHED[1]:-} ]] && printf '%s\n' "$1" >&"${SY_LAUNCHED[1]}"
} 2>/dev/null

# Execute sy_client once in the container. Sets SY_TIMES; the exit code is sy_client's.
sy_launcher_run_client() { # <folder below the attempt's>
    local answer code
    SY_TIMES=
    if ! sy_launcher_send "run $1" || ! sy_launcher_read_answer end; then
        sy_log "$SY_LAUNCHER ended before the benchmark did"
        return 1
    fi
    code=${answer%% *} SY_TIMES=${answer#* } # a signal would interrupt read
    return "$code"
}

# Execute sy_client with its time-out and write its times. Without an answer the container ended before
# the benchmark: there are no times.
sy_launcher_time_client() {
    local code
    sy_start_watchdog
    sy_launcher_run_client .
    code=$?
    sy_stop_watchdog
    trap '' TERM INT # the end is written also when a signal comes
    [[ -z $SY_TIMES ]] || printf 'end %d %s\n' "$code" "$SY_TIMES" >>"$SY_STATE_FILE"
    return "$code"
}

sy_launcher_stop() {
    trap '' TERM INT
    sy_launcher_stop_container
    sy_leftover_remove_own
    sy_device_check_return
    sy_peers_stop
}

# End the container by the end of its input, and by SIGKILL after the grace time.
sy_launcher_stop_container() {
    local fd deadline
    [[ -n ${SY_LAUNCHER_PID:-} ]] || return 0
    fd=${SY_LAUNCHED[1]:-}
    [[ -z $fd ]] || exec {fd}>&-
    sy_set_time deadline "$((${SY_GRACE_S:-10} * 1000000))"
    while kill -0 "$SY_LAUNCHER_PID" 2>/dev/null && ! sy_is_past "$deadline"; do
        sy_pause 0.02
    done
    kill -s KILL "$SY_LAUNCHER_PID" 2>/dev/null || :
    wait "$SY_LAUNCHER_PID" 2>/dev/null
    sy_kind remove
}

# --- tags ------------------------------------------------------------------------------------
sy_tag_launcher() { # <the container's name>
    sy_tag launcher "$SY_LAUNCHER"
    sy_tag launcher_container "$1"
    sy_tag launcher_measured "$(sy_kind is_measured)"
}

# --- inside ----------------------------------------------------------------------------------

sy_container_main() {
    local word argument code fd
    SY_INSIDE_PID=
    export PATH HOME="${HOME:-/}" # LXC starts without; mpirun looks for its programs by PATH
    sy_without_scheduler
    # Without an exec helper outside no scheduler's command can be started.
    [[ -n ${SY_OUTSIDE:-} ]] || export SY_SCHEDULER=local
    # The benchmark's output must not be read as an answer.
    exec {fd}>&1 1>&2
    trap 'sy_container_signal TERM' TERM
    trap 'sy_container_signal INT' INT
    cd -- "$SY_SCRATCH" || exit 1
    sy_container_check_single_copy
    sy_run_setup </dev/null
    printf 'ready %s %s\n' "$(sy_launcher_allowed_processors)" "$HOSTNAME" >&"$fd" || exit 1
    if [[ -n ${SY_PEER_HELPER:-} ]]; then
        sy_exec_serve "$SY_PEER_HELPER" sy_exec_run_in_container &
        SY_INSIDE_PID=$!
    fi
    while true; do
        read -r word argument
        code=$?
        ((code <= 128)) || continue # a signal interrupted it, and was forwarded
        ((code == 0)) || break
        case $word in
        run)
            sy_container_run_client "$argument" "$fd" &
            SY_INSIDE_PID=$!
            ;;
        signal) sy_container_signal "$argument" ;;
        reach) sy_peers_probe "$argument" >&"$fd" ;;
        trip) printf 'trip %s\n' "$(sy_condition_measure_round_trip "$argument")" >&"$fd" ;;
        esac
    done
    sy_container_end
}

# Ranks of Open MPI read each other's memory (process_vm_readv), which a container's seccomp filter
# may refuse: docker 20.10's does, without CAP_SYS_PTRACE. Then every message costs a failed call and
# a warning. Such a container has its messages copied twice (sy_open_mpi_set_local).
sy_container_check_single_copy() {
    local -r ptrace=19 # CAP_SYS_PTRACE in linux/capability.h
    [[ $(sy_launcher_read_status Seccomp) == 2 ]] && ((!(16#$(sy_launcher_read_status CapEff) >> ptrace & 1))) || return 0
    export SY_MPI_SINGLE_COPY=none
    sy_tag launcher_mpi_single_copy none
}

sy_container_signal() { # <name>
    [[ -z $SY_INSIDE_PID ]] || sy_signal_tree "$1" "$SY_INSIDE_PID"
}

# Stop what still runs: by SIGTERM, and by SIGKILL after 2 s.
sy_container_end() {
    local deadline
    sy_set_time deadline 2000000
    trap '' TERM INT
    [[ -n $SY_INSIDE_PID ]] && kill -0 "$SY_INSIDE_PID" 2>/dev/null || exit 0
    sy_signal_tree TERM "$SY_INSIDE_PID"
    while kill -0 "$SY_INSIDE_PID" 2>/dev/null && ! sy_is_past "$deadline"; do
        sy_pause 0.05
    done
    sy_signal_tree KILL "$SY_INSIDE_PID"
    exit 0
}

# Execute sy_client once and send the answer.
sy_container_run_client() { # <folder below the attempt's> <descriptor to answer to>
    [[ $1 == . ]] || SY_ATTEMPT_DIR=$SY_ATTEMPT_DIR/$1
    exec >>"$SY_ATTEMPT_DIR/out.$SY_CLIENT" 2>>"$SY_ATTEMPT_DIR/err.$SY_CLIENT" || exit 1
    sy_run_client_timed "$2"
}

# The command that starts a container, as far as it is the same for all kinds: mounts, variables, /etc/hosts,
# /dev/shm; limits and network of a container whose processes are children of this shell.

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
