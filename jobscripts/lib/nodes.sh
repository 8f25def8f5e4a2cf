#!/bin/bash
# The job's nodes, programs on them, and MPI ranks. Part of steelyard.sh; for benchmarks to call.
# shellcheck disable=SC2153 # SY_CLIENTS and SY_CLIENT are two things

# --- nodes -----------------------------------------------------------------------------------

# The job's nodes, one a line, this client's own first; without a scheduler this host.
sy_nodes() {
    sy_scheduler nodes
}

# An address that the job's other nodes reach: the scheduler's own, or what the name resolves to.
sy_node_address() { # <node>
    local address line
    address=$(sy_scheduler node_address "$1") || return
    if [[ ! $address =~ ^[0-9.]+$ && $address != *:* ]]; then
        line=$(getent ahosts -- "$address") || {
            sy_say "the address of node $1 is not known: $address does not resolve on $HOSTNAME"
            return 1
        }
        address=${line%% *}
    fi
    printf '%s\n' "$address"
}

# Run a command on a node of the job, this one included. No input; the exit code is the command's.
sy_on_node() { # <node> <command> <argument>...
    local node=$1
    shift
    if sy_scheduler is_this_node "$node"; then
        "$@" </dev/null
    elif [[ -n ${SY_FAR_DOOR:-} ]]; then
        sy_far_on_node "$node" "$@"
    else
        sy_scheduler on_node "$node" "$@" </dev/null
    fi
}

# --- programs --------------------------------------------------------------------------------

# The first of: the named program's own variable, PATH. Prints its path or says what is missing.
sy_program() { # <program> <path from a variable, may be empty> <what to do>
    local path=$2
    if [[ -n $path ]]; then
        [[ -f $path && -x $path ]] && printf '%s' "$path" && return 0
        sy_say "$path: no program that can be run"
        return 3
    fi
    path=$(type -P -- "$1") && printf '%s' "$path" && return 0
    sy_say "$1 is missing on $HOSTNAME: $3"
    return 3
}

# For benchmarks that bring their own launcher (mpirun): it must not see the scheduler's job.
sy_without_scheduler() {
    local name
    # shellcheck disable=SC2046 # names of variables
    for name in "${!PMI_@}" "${!PMIX_@}" "${!PMI2_@}" "${!OMPI_@}" "${!PRTE_@}" "${!PBS_@}" \
        $(sy_every_scheduler variables); do
        unset "$name"
    done
}

# --- MPI -------------------------------------------------------------------------------------

# Run a program on so many MPI ranks. The one client of a job with several nodes has all of them,
# in equal shares; clients side by side do not know of each other, and each stays on its own node.
# One rank needs no launcher, nor the daemon that Open MPI would start beside it: two that start at
# once may fail over their common folder.
sy_mpi_run() { # <ranks> <mpirun> <program> <argument>...
    local ranks=$1 mpirun=$2 launcher
    local -a nodes=() options=()
    shift 2
    sy_tag mpi.bind "${SY_BIND:-none}"
    if ((ranks == 1)) && [[ ${SY_BIND:-none} == none ]]; then
        OMPI_MCA_ess_singleton_isolated=1 "$@" </dev/null
        return
    fi
    launcher=$(type -P -- "$mpirun") || {
        sy_say "$mpirun is missing on $HOSTNAME: install the Debian package openmpi-bin"
        return 3
    }
    ((SY_CLIENTS > 1)) || mapfile -t nodes < <(sy_nodes)
    if [[ $("$launcher" --version 2>/dev/null) == *'Open MPI'* ]]; then
        if ((${#nodes[@]} > 1)); then
            sy_open_mpi_across "$ranks" || return
        else
            sy_open_mpi_here "$ranks" || return
        fi
    elif ((${#nodes[@]} > 1)); then
        sy_say "$mpirun is not Open MPI: ranks on several nodes are started with Open MPI's only"
        return 3
    else
        options=(-np "$ranks")
        [[ ${SY_BIND:-none} == none ]] || options+=(-bind-to "$SY_BIND") # MPICH's words
    fi
    "$launcher" "${options[@]}" "$@" </dev/null
}

# The words that stand before a program whose MPI calls are to be profiled: none, or, with the
# benchmark's parameter profile = true, the profiler and its file (docs/mpi-profile.md).
sy_profiler() { # sets `profiler` of the caller
    local program
    profiler=()
    [[ $SY_PARAM_PROFILE == true ]] || return 0
    program=$(sy_program steelyard-mpiprof "${STEELYARD_MPIPROF:-}" \
        'build it with make all (needs mpicc: Debian package libopenmpi-dev), and set STEELYARD_MPIPROF or PATH') || return
    # shellcheck disable=SC2034 # the caller's
    profiler=("$program" "$SY_ATTEMPT_DIR/mpiprof.$SY_CLIENT.json")
}

# All on this node, over shared memory.
sy_open_mpi_here() { # <ranks>; sets `options` of the caller
    local sharers=${SY_SHARERS:-$(sy_scheduler clients_per_node)}
    options=(-np "$1" --host "localhost:$1" --oversubscribe --bind-to "${SY_BIND:-none}"
        --mca pml ob1 --mca btl '^tcp,openib')
    ((EUID != 0)) || options+=(--allow-run-as-root)
    [[ -z ${SY_MPI_TMP:-} ]] || options+=(--mca orte_tmpdir_base "$SY_MPI_TMP")
    [[ -z ${SY_MPI_SINGLE_COPY:-} ]] ||
        options+=(--mca btl_vader_single_copy_mechanism "$SY_MPI_SINGLE_COPY")
    if ((sharers > 1)) && [[ ${SY_BIND:-none} != none ]]; then
        sy_say "bind = $SY_BIND: $sharers clients share this node, and each would take the same processors"
        return 2
    fi
    # Waiting ranks spin: with more ranks than processors they would keep the others from work.
    (($1 * sharers <= $(nproc))) || options+=(--mca mpi_yield_when_idle 1)
}

# Over the nodes of the job. Open MPI's daemons are started by sy_on_node (it calls its "rsh agent"
# with node and command line), which works under every scheduler and leaves out Open MPI's own
# knowledge of them. Messages go by TCP over the networks of the nodes' addresses.
sy_open_mpi_across() { # <ranks>; reads `nodes`, sets `options` of the caller
    local node hosts='' networks='' address prefix
    local -r each=$((($1 + ${#nodes[@]} - 1) / ${#nodes[@]}))
    for node in "${nodes[@]}"; do
        hosts+=${hosts:+,}$node:$each
        address=$(sy_node_address "$node") || return
        # Open MPI takes a /32 for "loopback too", and then mistakes one rank for another.
        prefix=${prefix:-$(sy_prefix_length "$address")}
        networks+=${networks:+,}$address/$prefix
    done
    sy_mpi_agent >"$SY_ATTEMPT_DIR/mpi-agent.$SY_CLIENT" || return
    chmod 700 "$SY_ATTEMPT_DIR/mpi-agent.$SY_CLIENT" || return
    options=(-np "$1" --host "$hosts" --bind-to "${SY_BIND:-none}" --mca plm rsh --mca ras '^slurm,tm'
        --mca plm_rsh_agent "$SY_ATTEMPT_DIR/mpi-agent.$SY_CLIENT" --mca plm_rsh_no_tree_spawn 1
        --mca orte_keep_fqdn_hostnames 1
        --mca pml ob1 --mca btl 'self,vader,tcp' --mca btl_tcp_if_include "$networks"
        --mca oob_tcp_if_include "$networks")
    ((EUID != 0)) || options+=(--allow-run-as-root)
    [[ -z ${SY_MPI_TMP:-} ]] || options+=(--mca orte_tmpdir_base "$SY_MPI_TMP")
    ((each <= $(nproc))) || options+=(--oversubscribe --mca mpi_yield_when_idle 1)
    # A daemon that goes into the background would end its container.
    [[ -z ${SY_FAR_DOOR:-} ]] || options+=(--leave-session-attached)
}

# How many bits of an address of this node name its network.
sy_prefix_length() { # <address>
    local line
    [[ -z ${SY_FAR_PREFIX:-} ]] || { # an image may be without ip
        printf '%s' "$SY_FAR_PREFIX"
        return
    }
    line=$(ip -oneline address show to "$1") line=${line#* inet* } line=${line#*/}
    line=${line%%[!0-9]*}
    printf '%s' "${line:-24}"
}

# A program of its own, since Open MPI executes it: the functions above, and one call.
sy_mpi_agent() {
    printf '#!/bin/bash\n# NODE COMMAND LINE, called by mpirun\n'
    # shellcheck disable=SC2046 # names
    declare -p SY_SCHEDULER SY_THIS_NODE $(compgen -v "SY_${SY_SCHEDULER^^}_")
    # shellcheck disable=SC2046 # names
    declare -f sy_on_node sy_far_ask sy_far_on_node sy_scheduler \
        $(compgen -A function "sy_${SY_SCHEDULER}_")
    # shellcheck disable=SC2016 # for the program to expand
    printf '%s\n' 'node=$1; shift; sy_on_node "$node" bash -c "$*"'
}
