#!/bin/bash
# How each launcher starts, limits and removes a container. Part of steelyard.sh; called by
# launcher.sh, which sets SY_LAUNCHER_NAME, _OWNER and _CPUSET.
# shellcheck disable=SC2153 # SY_LAUNCHER_NAME is no misspelling

# Sets SY_LAUNCHER_COMMAND: run.sh inside, its input and output ours.
sy_launcher_command() {
    SY_LAUNCHER_INSIDE=(bash "${SY_LAUNCHER_SCRIPT:-$SY_STUDY_DIR/runs/$SY_RUN_ID/run.sh}")
    SY_LAUNCHER_COMMAND=()
    sy_launcher_paths
    case $SY_LAUNCHER_KIND in
    docker | podman) sy_launcher_engine "$SY_LAUNCHER_KIND" ;;
    unshare) sy_launcher_unshare ;;
    apptainer) sy_launcher_apptainer ;;
    systemd-nspawn) sy_launcher_nspawn ;;
    lxc) sy_launcher_lxc ;;
    *)
        sy_say "$SY_LAUNCHER: this version cannot start it"
        return 4
        ;;
    esac || return
    SY_LAUNCHER_COMMAND=(env SY_ROLE=inside "${SY_LAUNCHER_COMMAND[@]}")
}

# --- what is there inside --------------------------------------------------------------------

# SY_LAUNCHER_PATHS: what is found inside under the same name. The study, the scratch folder, our
# programs, and whatever a parameter names; not the system's own folders, the image has its own.
sy_launcher_paths() {
    local name path
    SY_LAUNCHER_PATHS=("$SY_STUDY_DIR" "$SY_SCRATCH" ${SY_PEERS:+"$SY_PEERS"})
    path=${SY_LAUNCHER_FOLDER:-/}
    sy_launcher_is_system "$path" || sy_launcher_add_path "$path"
    for name in "${!STEELYARD_@}"; do
        path=${!name}
        [[ $path == /* && -f $path ]] || continue
        # Beside our programs lie others that they start, and in ../lib what they preload.
        [[ ! -f ${path%/*/*}/lib/libsteelyard-mpiprof.so ]] || sy_launcher_add_path "${path%/*/*}/lib"
        sy_launcher_is_system "${path%/*}" || path=${path%/*}
        sy_launcher_add_path "$path"
    done
    sy_launcher_add_words "${SY_WORDS_ENV[*]-}"
    for name in "${!SY_PARAM_@}"; do
        path=${!name}
        if [[ $path != /* || ! -e $path ]]; then
            sy_launcher_add_words "$path"
        elif [[ -d $path ]] && sy_launcher_is_system "$path"; then
            sy_say "$path is the container's own, not the node's"
        else
            sy_launcher_add_path "$path"
        fi
    done
}

# What a command line names: programs and input by absolute path, the image's own left alone.
sy_launcher_add_words() { # <text>
    local word
    local -a words
    IFS=$' \t\n=;|&<>(),"\'' read -r -d '' -a words <<<"$1" || :
    for word in ${words[@]+"${words[@]}"}; do
        [[ $word != /* || ! -e $word ]] || sy_launcher_is_system "$word" || sy_launcher_add_path "$word"
    done
}

sy_launcher_add_path() { # <path>
    local path
    for path in "${SY_LAUNCHER_PATHS[@]}"; do
        [[ $path != "$1" ]] || return 0
    done
    SY_LAUNCHER_PATHS+=("$1")
}

sy_launcher_is_system() { # <folder>
    case ${1%/} in
    '' | /usr/libexec/* | /usr/local/libexec/*) [[ -z ${1%/} ]] ;;
    /bin | /bin/* | /sbin | /sbin/* | /lib* | /usr | /usr/* | /etc | /etc/*) ;;
    /proc | /proc/* | /sys | /sys/* | /dev | /dev/* | /run | /var | /var/tmp) ;;
    *) return 1 ;;
    esac
}

# Names of the variables that go inside: the run's own, and those of MPI and numerical libraries.
sy_launcher_variables() {
    local name
    while read -r name; do
        case $name in
        SY_ROLE) ;; # is another one inside
        SY_* | STEELYARD_* | LC_ALL | OMP_* | OMPI_MCA_* | MKL_* | OPENBLAS_* | BLIS_*)
            printf '%s\n' "$name"
            ;;
        esac
    done < <(compgen -e)
}

# An /etc/hosts that knows the container's own name: an image may be without, and mpirun would wait
# ten seconds for a name server. Prints its path.
sy_launcher_hosts() {
    local -r file=$SY_ATTEMPT_DIR/hosts.$SY_CLIENT${SY_PEERS:+.$SY_PEER_NODE.$SY_PEER}
    local address=127.0.1.1
    [[ -z ${SY_NETWORK_NS:-} ]] || address=$(sy_network_address "$SY_PEER_NODE" "$((SY_PEER + 1))")
    printf '127.0.0.1 localhost\n::1 localhost\n%s %s %s\n' "$address" "$SY_LAUNCHER_NAME" "$HOSTNAME" >"$file" &&
        printf '%s' "$file"
}

# A field of the comma-separated value of --mount, as RFC 4180 quotes it.
sy_launcher_field() { # <key=value>
    local text=${1//\"/\"\"}
    printf '"%s"' "$text"
}

# --- docker and podman -----------------------------------------------------------------------

sy_launcher_engine() { # <docker or podman>
    local engine=$1 name path network=$SY_LAUNCHER_NETWORK
    local -a groups
    sy_launcher_has_image "$engine" || return
    SY_LAUNCHER_PINNED=
    ((EUID != 0)) || sy_left_mark container "$engine $SY_LAUNCHER_NAME" || return
    [[ $engine != podman || $EUID == 0 ]] || sy_launcher_rootless || return
    if [[ $network == macvlan ]]; then
        network=$(sy_launcher_macvlan "$engine") || return
    elif [[ -n ${SY_LAUNCHER_ACROSS:-} && $(sy_network_whose) == ours ]]; then
        network=none
        [[ -z ${SY_NETWORK_NS:-} ]] || network=ns:/run/netns/$SY_NETWORK_NS
    fi
    [[ $engine != podman || -d /run/systemd/system ]] || SY_LAUNCHER_COMMAND=(--cgroup-manager=cgroupfs)
    SY_LAUNCHER_COMMAND=("$engine" "${SY_LAUNCHER_COMMAND[@]}" run --interactive --rm --pull=never
        --name="$SY_LAUNCHER_NAME" --label="steelyard.study=${SY_LAUNCHER_LABEL:-$SY_STUDY_DIR}"
        --label="steelyard.run=$SY_RUN_ID" --label="steelyard.owner=$SY_LAUNCHER_OWNER"
        --user="$EUID:$(id -g)" --workdir="$SY_SCRATCH" --network="$network"
        --shm-size="$(sy_launcher_shm_bytes)" --env=SY_ROLE)
    if [[ -n $SY_LAUNCHER_PINNED ]]; then
        SY_LAUNCHER_COMMAND=(taskset --cpu-list "$SY_LAUNCHER_CPUSET" "${SY_LAUNCHER_COMMAND[@]}")
    else
        SY_LAUNCHER_COMMAND+=(--cpuset-cpus="$SY_LAUNCHER_CPUSET")
    fi
    if [[ $engine == podman && $EUID != 0 ]]; then
        SY_LAUNCHER_COMMAND+=(--userns=keep-id)
        # What leaves the node goes through a program, not through the kernel's bridge alone.
        [[ $network != bridge ]] || sy_tag launcher_network 'bridge, slirp4netns'
    fi
    read -r -a groups <<<"$(id -G)"
    for name in "${groups[@]:1}"; do
        SY_LAUNCHER_COMMAND+=(--group-add="$name")
    done
    [[ -z ${SY_LAUNCHER_MEMORY_BYTES:-} ]] || SY_LAUNCHER_COMMAND+=(
        --memory="$SY_LAUNCHER_MEMORY_BYTES" --memory-swap="$SY_LAUNCHER_MEMORY_BYTES")
    while read -r name; do
        SY_LAUNCHER_COMMAND+=(--env="$name")
    done < <(sy_launcher_variables)
    for path in "${SY_LAUNCHER_PATHS[@]}"; do
        SY_LAUNCHER_COMMAND+=(--mount="type=bind,$(sy_launcher_field "source=$path"),$(sy_launcher_field "target=$path")")
    done
    SY_LAUNCHER_COMMAND+=(--entrypoint="${SY_LAUNCHER_INSIDE[0]}" "$SY_LAUNCHER_IMAGE"
        "${SY_LAUNCHER_INSIDE[@]:1}")
}

# Never fetched by a run: it would be another image tomorrow.
sy_launcher_has_image() { # <docker or podman>
    local said
    said=$("$1" image inspect --format='{{.Id}}' "$SY_LAUNCHER_IMAGE" 2>&1) && {
        sy_tag launcher_image_id "$said"
        return 0
    }
    case ${said,,} in
    *'no such image'* | *'not known'* | *'not found'* | *'failed to find'*)
        sy_say "the image $SY_LAUNCHER_IMAGE is not on $SY_THIS_NODE: say there $1 pull $SY_LAUNCHER_IMAGE, or steelyard image make $1:$SY_LAUNCHER_IMAGE"
        ;;
    *) sy_say "$1 cannot be used on $SY_THIS_NODE: ${said##*$'\n'}" ;;
    esac
    return 3
}

# Addresses are the administrator's to give: a network of theirs is used, none is made.
sy_launcher_macvlan() { # <docker or podman>
    local name
    name=$("$1" network ls --filter=driver=macvlan --format='{{.Name}}') name=${name%%$'\n'*}
    [[ -n $name ]] || {
        sy_say "$1 on $SY_THIS_NODE has no network of the driver macvlan: make one there, $1 network create --driver=macvlan --subnet=NETWORK --opt=parent=DEVICE steelyard"
        return 4
    }
    printf '%s' "$name"
}

# MPI ranks talk through /dev/shm: as much as a node without container has, half of the memory.
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

# --- unshare ---------------------------------------------------------------------------------

# Own mounts, processes, System V objects, shared memory and host name; the files are the node's.
# Process numbers begin at 1 in each: Open MPI names its files by them, so that containers side by
# side need a /dev/shm of their own, and its session folder there.
sy_launcher_unshare() {
    # shellcheck disable=SC2016 # for the shell inside
    local inside='mount -t tmpfs -o "mode=1777,size=$0" tmpfs /dev/shm' hosts=''
    SY_LAUNCHER_COMMAND=(unshare --mount --pid --fork --kill-child --mount-proc --ipc --uts)
    export SY_MPI_TMP=/dev/shm
    if [[ -n ${SY_NETWORK_NS:-} ]]; then
        hosts=$(sy_launcher_hosts) || return
        # shellcheck disable=SC2016
        inside+=' && mount --bind "$1" /etc/hosts && shift'
    fi
    if ((EUID != 0)); then
        # mount(8) wants to be root; the second namespace makes the user of it again.
        SY_LAUNCHER_COMMAND+=(--user --map-root-user)
        if [[ $SY_LAUNCHER_NETWORK == bridge ]]; then
            sy_say "$SY_LAUNCHER: an ordinary user's network has a loopback device only"
            sy_tag launcher_network loopback
            SY_LAUNCHER_COMMAND+=(--net)
            inside+=' && ip link set lo up'
        fi
        inside+=" && exec unshare --user --map-user=$EUID --map-group=$(id -g)"
    else
        inside+=' && exec'
    fi
    SY_LAUNCHER_COMMAND+=(sh -c "$inside"' "$@"' "$(sy_launcher_shm_bytes)" ${hosts:+"$hosts"}
    "${SY_LAUNCHER_INSIDE[@]}")
    sy_launcher_here
}

# What root can give to any launcher whose processes are children of ours: a network of its own,
# a limit of memory; and the processors, which everybody can give.
sy_launcher_here() {
    sy_launcher_pinned || return
    if [[ -n ${SY_NETWORK_NS:-} ]]; then
        sy_launcher_in_network
    elif [[ $SY_LAUNCHER_NETWORK == bridge ]] && ((EUID == 0)); then
        sy_launcher_make_veth || return
        SY_LAUNCHER_COMMAND=(nsenter "--net=/run/netns/$SY_LAUNCHER_NAME" "${SY_LAUNCHER_COMMAND[@]}")
    fi
}

sy_launcher_in_network() {
    SY_LAUNCHER_COMMAND=(nsenter "--net=/run/netns/$SY_NETWORK_NS" "${SY_LAUNCHER_COMMAND[@]}")
}

# The processors and, for root, the memory.
sy_launcher_pinned() {
    SY_LAUNCHER_COMMAND=(taskset --cpu-list "$SY_LAUNCHER_CPUSET" "${SY_LAUNCHER_COMMAND[@]}")
    [[ -n ${SY_LAUNCHER_MEMORY_BYTES:-} ]] && ((EUID == 0)) || return 0
    sy_launcher_make_cgroup || return
    # shellcheck disable=SC2016
    SY_LAUNCHER_COMMAND=(sh -c 'echo $$ >"$0" && exec "$@"' "$SY_LAUNCHER_CGROUP/cgroup.procs"
        "${SY_LAUNCHER_COMMAND[@]}")
}

# A network namespace with one veth pair, to this node only: forwarding is the administrator's.
sy_launcher_make_veth() {
    local n=$((($$ % 16384) * 4)) ns=$SY_LAUNCHER_NAME base
    base=10.213.$((n / 256)).
    SY_LAUNCHER_VETH=sy$$
    sy_left_mark space "$ns" && sy_left_mark link "$SY_LAUNCHER_VETH" && ip netns add "$ns" &&
        ip link add "$SY_LAUNCHER_VETH" type veth peer name eth0 netns "$ns" &&
        ip address add "$base$((n % 256 + 1))/30" dev "$SY_LAUNCHER_VETH" &&
        ip link set "$SY_LAUNCHER_VETH" up &&
        ip -netns "$ns" link set lo up &&
        ip -netns "$ns" address add "$base$((n % 256 + 2))/30" dev eth0 &&
        ip -netns "$ns" link set eth0 up &&
        ip -netns "$ns" route add default via "$base$((n % 256 + 1))" && return
    sy_say "$SY_LAUNCHER: no veth pair could be made on $SY_THIS_NODE (see above)"
    return 4
}

# --- apptainer, systemd-nspawn, LXC ----------------------------------------------------------

sy_launcher_apptainer() {
    local path
    # Its own /dev/shm, for the reason that unshare has one.
    SY_LAUNCHER_COMMAND=(apptainer exec --pid --ipc --no-home --scratch /dev/shm --pwd "$SY_SCRATCH")
    export SY_MPI_TMP=/dev/shm
    [[ $SY_LAUNCHER_NETWORK == host || -n ${SY_NETWORK_NS:-} ]] || SY_LAUNCHER_COMMAND+=(--net --network "$SY_LAUNCHER_NETWORK")
    # Root's own cgroup serves everywhere; apptainer's needs systemd, which a user's has to have.
    [[ -z ${SY_LAUNCHER_MEMORY_BYTES:-} || $EUID == 0 ]] ||
        SY_LAUNCHER_COMMAND+=(--memory "$SY_LAUNCHER_MEMORY_BYTES")
    # It asks for all capabilities; root in a container has often not this one.
    ((EUID != 0)) || sy_launcher_has_capability 24 || SY_LAUNCHER_COMMAND+=(--drop-caps CAP_SYS_RESOURCE)
    for path in "${SY_LAUNCHER_PATHS[@]}"; do
        SY_LAUNCHER_COMMAND+=(--mount "type=bind,$(sy_launcher_field "source=$path"),$(sy_launcher_field "destination=$path")")
    done
    SY_LAUNCHER_COMMAND+=("$SY_LAUNCHER_IMAGE" "${SY_LAUNCHER_INSIDE[@]}")
    sy_launcher_pinned || return
    [[ -z ${SY_NETWORK_NS:-} ]] || sy_launcher_in_network
}

sy_launcher_has_capability() { # <number in linux/capability.h>
    ((16#$(sy_launcher_status CapPrm) >> $1 & 1))
}

# Writes go to memory: the root folder stays as it is, and serves several containers at once.
sy_launcher_nspawn() {
    local path name escaped hosts
    local -a run=()
    hosts=$(sy_launcher_hosts) || return
    ((EUID != 0)) || sy_left_mark folder "/run/systemd/nspawn/propagate/$SY_LAUNCHER_NAME" || return
    # Where /run lies on a disk, it would refuse, aloud, to remove its own folder there.
    # shellcheck disable=SC2016
    [[ $(stat --file-system --format=%T /run) == tmpfs ]] ||
        run=(unshare --mount sh -c 'mkdir -p "$0" && mount -t tmpfs tmpfs "$0" && exec "$@"'
            /run/systemd/nspawn/propagate)
    SY_LAUNCHER_COMMAND=(${run[@]+"${run[@]}"} systemd-nspawn --quiet --directory="$SY_LAUNCHER_IMAGE" --read-only
        --volatile=overlay --register=no --keep-unit --as-pid2 --kill-signal=SIGTERM --console=pipe
        --machine="$SY_LAUNCHER_NAME" --chdir="$SY_SCRATCH" --setenv=SY_ROLE=inside)
    for path in "${SY_LAUNCHER_PATHS[@]}"; do
        escaped=${path//\\/\\\\} escaped=${escaped//:/\\:}
        SY_LAUNCHER_COMMAND+=(--bind="$escaped:$escaped")
    done
    escaped=${hosts//\\/\\\\} escaped=${escaped//:/\\:}
    SY_LAUNCHER_COMMAND+=(--bind-ro="$escaped:/etc/hosts")
    while read -r name; do
        SY_LAUNCHER_COMMAND+=(--setenv="$name=${!name}")
    done < <(sy_launcher_variables)
    SY_LAUNCHER_COMMAND+=(/bin/"${SY_LAUNCHER_INSIDE[0]}" "${SY_LAUNCHER_INSIDE[@]:1}")
    sy_launcher_here
}

# From the configuration of an existing container that stands still; several share its root folder.
sy_launcher_lxc() {
    local path name base kind hosts
    hosts=$(sy_launcher_hosts) && sy_left_mark lxc "$SY_LAUNCHER_NAME" || return
    base=$(lxc-config lxc.lxcpath)/$SY_LAUNCHER_IMAGE
    # In a session of its own: it would make the user's terminal raw, in which Ctrl-C is a letter.
    SY_LAUNCHER_COMMAND=(setsid lxc-execute --name="$SY_LAUNCHER_NAME" --rcfile="$base/config")
    # Without /proc neither limits nor the benchmark's own tools can be looked at.
    grep -qE '^[[:space:]]*lxc\.mount\.auto[[:space:]]*=.*proc' "$base/config" 2>/dev/null ||
        SY_LAUNCHER_COMMAND+=(--define=lxc.mount.auto=proc:mixed)
    for path in "${SY_LAUNCHER_PATHS[@]}"; do
        kind='dir'
        [[ -d $path ]] || kind='file'
        path=$(sy_launcher_fstab "$path")
        SY_LAUNCHER_COMMAND+=(--define="lxc.mount.entry=$path ${path#/} none bind,create=$kind 0 0")
    done
    # Its own shared memory, for the reason that unshare has one.
    SY_LAUNCHER_COMMAND+=(
        --define="lxc.mount.entry=$(sy_launcher_fstab "$hosts") etc/hosts none bind,ro,create=file 0 0"
        --define="lxc.mount.entry=tmpfs dev/shm tmpfs mode=1777,size=$(sy_launcher_shm_bytes),create=dir 0 0")
    export SY_MPI_TMP=/dev/shm
    # A name alone: its value is taken from our environment.
    while read -r name; do
        SY_LAUNCHER_COMMAND+=(--define="lxc.environment=$name")
    done < <(printf 'SY_ROLE\n' && sy_launcher_variables)
    [[ -z ${SY_LAUNCHER_MEMORY_BYTES:-} ]] || SY_LAUNCHER_COMMAND+=(
        --define="lxc.cgroup.memory.limit_in_bytes=$SY_LAUNCHER_MEMORY_BYTES"
        --define="lxc.cgroup2.memory.max=$SY_LAUNCHER_MEMORY_BYTES")
    # `none`: that of whoever starts it.
    if [[ $SY_LAUNCHER_NETWORK == host || -n ${SY_NETWORK_NS:-} ]]; then
        SY_LAUNCHER_COMMAND+=(--define=lxc.net.0.type=none)
    else
        sy_launcher_lxc_network || return
    fi
    SY_LAUNCHER_COMMAND=(taskset --cpu-list "$SY_LAUNCHER_CPUSET" "${SY_LAUNCHER_COMMAND[@]}"
        -- "${SY_LAUNCHER_INSIDE[@]}")
    [[ -z ${SY_NETWORK_NS:-} ]] || sy_launcher_in_network
}

# As fstab(5) writes a path.
sy_launcher_fstab() { # <path>
    local path=$1
    path=${path//\\/\\134} path=${path// /\\040} path=${path//$'\n'/\\012}
    printf '%s' "${path//$'\t'/\\011}"
}

# A network is the configuration's: it has the device and the addresses.
sy_launcher_lxc_network() {
    local type want=$SY_LAUNCHER_NETWORK
    [[ $want != bridge ]] || want=veth
    type=$(sy_launcher_lxc_says type)
    if [[ $type == "$want" ]]; then
        [[ $type != phys ]] || sy_device_for_lxc "$(sy_launcher_lxc_says link)"
        return
    fi
    sy_say "$SY_LAUNCHER: the configuration of $SY_LAUNCHER_IMAGE on $SY_THIS_NODE has lxc.net.0.type = ${type:-(nothing)}: say there lxc.net.0.type = $want, lxc.net.0.link, lxc.net.0.flags = up and an address"
    return 4
}

sy_launcher_lxc_says() { # <key below lxc.net.0>
    lxc-info --name="$SY_LAUNCHER_IMAGE" --config="lxc.net.0.$1" --no-humanize 2>/dev/null
}
