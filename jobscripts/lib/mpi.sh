#!/bin/bash
# MPI ranks, on this node or over the job's. Part of steelyard.sh; for benchmarks to call.
#
# sy_mpi_run starts a program on so many ranks. A single client has them on all nodes of the job, in shares
# that differ by one at most; of several clients each has them on its own node. Open MPI and MPICH (Hydra)
# are known; another mpirun works on one node only.
#
# An mpirun that was built for the scheduler starts its daemons by it. Else it executes an agent, a script
# with the functions of this library that it needs, which calls sy_on_node: so one way works under every
# scheduler, also into containers. Tags: mpi.bind, mpi.start, mpi.containers, mpirun.version.
#
# It does not compare the program's MPI with mpirun's.
# shellcheck disable=SC2034,SC2153 # arrays are the caller's; SY_CLIENTS and SY_CLIENT are two things

# Run a program on the given number of MPI ranks. A single client has its ranks on all nodes of the job,
# in equal shares; with several clients each has its ranks on its own node.
# One rank needs no launcher, nor Open MPI's daemon. Without a daemon all singletons of a user share one
# folder, jf.0, on a node, and one that ends removes it from one that starts: here each client has a
# private one.
sy_mpi_run() { # <ranks> <mpirun> <program> <argument>...
    local ranks=$1 mpirun=$2 launcher output
    local -a nodes=() shares=() start=() options=()
    shift 2
    sy_tag mpi.bind "${SY_BIND:-none}"
    if ((ranks == 1)) && [[ ${SY_BIND:-none} == none ]]; then
        OMPI_MCA_ess_singleton_isolated=1 OMPI_MCA_orte_tmpdir_base=${SY_MPI_TMP:-$SY_SCRATCH} \
            "$@" </dev/null
        return
    fi
    launcher=$(type -P -- "$mpirun") || {
        sy_log "$mpirun is missing on $HOSTNAME: install the Debian package openmpi-bin"
        return 3
    }
    if [[ -n ${SY_PEERS:-} ]]; then
        sy_lines nodes sy_peers_list_names
        [[ -z ${SY_LAUNCHER_ACROSS:-} ]] || sy_tag mpi.containers "${#nodes[@]}"
    elif ((SY_CLIENTS == 1)); then
        sy_lines nodes sy_nodes
    fi
    output=$("$launcher" --version 2>/dev/null)
    sy_tag_nonempty mpirun.version "$(sy_mpi_version "$output")"
    sy_mpi_set_options "$ranks" "$output" || return
    "${start[@]}" "$launcher" "${options[@]}" "$@" </dev/null
}

# Print `mpirun (Open MPI) 4.1.4` or `HYDRA 4.0.2`: the first line, or MPICH's line `Version:`.
sy_mpi_version() { # <output of --version>
    local line=${1%%$'\n'*}
    if [[ $line == HYDRA* && $1 =~ Version:[[:space:]]+([^[:space:]]+) ]]; then
        line="HYDRA ${BASH_REMATCH[1]}"
    fi
    printf '%s' "$line"
}

# Set `options` and `start` of the caller: the arguments before the program, and before the launcher.
sy_mpi_set_options() { # <ranks> <output of --version>; reads `nodes`
    local -r several=$((${#nodes[@]} > 1))
    ((!several)) || sy_mpi_share_ranks "$1" || return
    case $several$2 in
    1*'Open MPI'*) sy_open_mpi_set_multinode "$1" ;;
    0*'Open MPI'*) sy_open_mpi_set_local "$1" ;;
    1*HYDRA*) sy_hydra_set_multinode "$1" ;;
    1*)
        sy_log "$mpirun is neither Open MPI's nor MPICH's: it cannot start ranks on several nodes here"
        return 3
        ;;
    *) sy_hydra_set_local "$1" ;;
    esac
}

# Set the command prefix that profiles MPI calls: with the benchmark's parameter profile = true the
# profiler and its file, else nothing (docs/mpi-profile.md).
sy_find_profiler() { # sets `profiler` of the caller
    local program
    profiler=()
    [[ $SY_PARAM_PROFILE == true ]] || return 0
    program=$(sy_program steelyard-mpiprof "${STEELYARD_MPIPROF:-}" \
        'build it with make all (needs mpicc: Debian package libopenmpi-dev), and set STEELYARD_MPIPROF or PATH') || return
    # shellcheck disable=SC2034 # the caller's
    profiler=("$program" "$SY_ATTEMPT_DIR/mpiprof.$SY_CLIENT.json")
}

# --- ranks of each node ----------------------------------------------------------------------

# Set each node's share of the ranks; shares differ by one at most. Where nodes have different numbers of
# slots, the first nodes with a free slot get one rank more. Fails where equal shares do not fit: the
# study requests more than the job was allocated.
sy_mpi_share_ranks() { # <ranks>; reads `nodes`, sets `shares` of the caller
    local i slots allocated='' more=$(($1 % ${#nodes[@]})) fits=1
    local -r each=$(($1 / ${#nodes[@]}))
    for i in "${!nodes[@]}"; do
        slots=$(sy_scheduler slots "${nodes[i]}")
        allocated+="${allocated:+, }${nodes[i]} ${slots:-any}"
        shares[i]=$each
        ((more == 0 || ${slots:-$1} <= each)) || shares[i]=$((each + 1)) more=$((more - 1))
        ((${slots:-$1} >= shares[i])) || fits=
    done
    [[ -n $fits ]] && ((more == 0)) && return
    sy_log "$1 ranks in equal shares on ${#nodes[@]} nodes do not fit into the job's slots ($allocated): ask for as many processors on each node as it gets ranks"
    return 2
}

# Print NODE:RANKS for every node that has ranks, commas between.
sy_mpi_format_hosts() { # reads `nodes` and `shares`
    local i list=''
    for i in "${!nodes[@]}"; do
        ((shares[i] == 0)) || list+=${list:+,}${nodes[i]}:${shares[i]}
    done
    printf '%s' "$list"
}

# --- Open MPI --------------------------------------------------------------------------------

# Options for ranks on this node, over shared memory. Searching fabrics (openib, ofi) takes a second.
sy_open_mpi_set_local() { # <ranks>; sets `options` of the caller
    local sharers=${SY_SHARERS:-$(sy_scheduler clients_per_node)}
    options=(-np "$1" --host "localhost:$1" --oversubscribe --bind-to "${SY_BIND:-none}"
        --mca pml ob1 --mca btl '^tcp,openib,ofi')
    ((EUID != 0)) || options+=(--allow-run-as-root)
    [[ -z ${SY_MPI_TMP:-} ]] || options+=(--mca orte_tmpdir_base "$SY_MPI_TMP")
    [[ -z ${SY_MPI_SINGLE_COPY:-} ]] ||
        options+=(--mca btl_vader_single_copy_mechanism "$SY_MPI_SINGLE_COPY")
    if ((sharers > 1)) && [[ ${SY_BIND:-none} != none ]]; then
        sy_log "bind = $SY_BIND: $sharers clients share this node, and each would take the same processors"
        return 2
    fi
    # Waiting ranks spin: with more ranks than processors they would take CPU time from the others.
    (($1 * sharers <= $(nproc))) || options+=(--mca mpi_yield_when_idle 1)
}

# Options for ranks on the job's nodes. An mpirun with the scheduler's support starts its daemons itself.
# Else sy_on_node starts them, as Open MPI's "rsh agent" (called with node and command line), which works
# under every scheduler. Messages go by TCP over the networks of the nodes' addresses.
sy_open_mpi_set_multinode() { # <ranks>; reads `nodes`, `shares`, `launcher`; sets `start`, `options`
    local networks most=0 i btl=self,vader,tcp
    if [[ -n ${SY_PEERS:-} ]]; then
        networks=$(sy_peers_list_networks)
    else
        networks=$(sy_mpi_list_networks) || return
    fi
    # Nodes of a throwaway cluster are one machine: ranks with the same number on their nodes would use
    # the same file in /dev/shm.
    [[ $networks != 127.* ]] || btl=self,tcp
    for i in "${shares[@]}"; do
        ((i <= most)) || most=$i
    done
    # A container's mpirun is not the node's, and cannot reach the scheduler.
    [[ -z ${SY_PEERS:-} ]] && sy_scheduler use_native_mpi "$launcher" || sy_open_mpi_add_agent || return
    options+=(
        -np "$1" --host "$(sy_mpi_format_hosts)" --oversubscribe --bind-to "${SY_BIND:-none}"
        --mca orte_keep_fqdn_hostnames 1 --mca pml ob1 --mca btl "$btl"
        --mca btl_tcp_if_include "$networks" --mca oob_tcp_if_include "$networks"
    )
    ((EUID != 0)) || options+=(--allow-run-as-root)
    [[ -z ${SY_MPI_TMP:-} ]] || options+=(--mca orte_tmpdir_base "$SY_MPI_TMP")
    [[ -z ${SY_MPI_SINGLE_COPY:-} ]] ||
        options+=(--mca btl_vader_single_copy_mechanism "$SY_MPI_SINGLE_COPY")
    # As in sy_open_mpi_set_local; always set, since mpirun would decide by slots.
    options+=(--mca mpi_yield_when_idle "$((most * ${SY_SHARERS:-1} > $(nproc)))")
}

sy_open_mpi_add_agent() { # adds to `options`, may set `start`
    local agent
    sy_mpi_make_agent || return
    options+=(--mca plm rsh --mca ras '^slurm,tm' --mca plm_rsh_agent "$agent"
        --mca plm_rsh_no_tree_spawn 1)
    # A daemon that goes into the background ends its container, and its task of PBS: pbs_mom kills the
    # task's processes, among them a daemon that has not yet made a new session.
    options+=(--leave-session-attached)
}

# Print ADDRESS/PREFIX of every node, commas between.
sy_mpi_list_networks() { # reads `nodes`
    local node address prefix='' list=''
    for node in "${nodes[@]}"; do
        address=$(sy_node_address "$node") || return
        # Open MPI takes a /32 for loopback, and then confuses ranks.
        prefix=${prefix:-$(sy_prefix_length "$address")}
        list+=${list:+,}$address/$prefix
    done
    printf '%s' "$list"
}

# Print the prefix length of an address of this node.
sy_prefix_length() { # <address>
    local line
    line=$(ip -oneline address show to "$1") line=${line#* inet* } line=${line#*/}
    line=${line%%[!0-9]*}
    printf '%s' "${line:-24}"
}

# --- MPICH -----------------------------------------------------------------------------------

sy_hydra_set_local() { # <ranks>; sets `options` of the caller
    options=(-np "$1")
    [[ ${SY_BIND:-none} == none ]] || options+=(-bind-to "$SY_BIND")
}

# MPICH's launcher is called Hydra. Its "rsh" is called with node and command line, as Open MPI's is.
sy_hydra_set_multinode() { # <ranks>; reads `nodes`, `shares`; sets `options`, may set `start`
    local address agent
    if [[ -n ${SY_LAUNCHER_ACROSS:-} ]]; then
        sy_log "ranks=across needs Open MPI's mpirun, and $mpirun is MPICH's"
        return 3
    fi
    sy_mpi_make_agent sy_mpi_start_proxy && address=$(sy_node_address "$SY_THIS_NODE") || return
    sy_hydra_set_local "$1"
    options+=(
        -hosts "$(sy_mpi_format_hosts)" -localhost "$address" -rmk user
        -launcher rsh -launcher-exec "$agent"
    )
}

# --- the agent -------------------------------------------------------------------------------

# Write the agent, a script that mpirun executes: the functions that it needs, and one call. Sets `agent`
# of the caller; a path with blanks becomes a name, and `start` adds its folder to PATH, since both
# launchers split a path at blanks.
sy_mpi_make_agent() { # [function to call]
    local -r file=$SY_ATTEMPT_DIR/mpi-agent.$SY_CLIENT call=${1:-sy_mpi_start_daemon}
    if [[ -n ${SY_LAUNCHER_ACROSS:-} ]]; then
        sy_tag mpi.start container
    else
        sy_tag mpi.start "$(sy_scheduler starter)"
    fi
    {
        printf '#!/bin/bash\n# NODE COMMAND LINE, called by mpirun\n'
        # shellcheck disable=SC2046 # names
        declare -p SY_SCHEDULER SY_THIS_NODE $(compgen -v "SY_${SY_SCHEDULER^^}_")
        # shellcheck disable=SC2046 # names
        declare -f sy_log sy_pause sy_read_uptime sy_set_time sy_is_past sy_on_node sy_exec_run_in_peer \
            sy_exec_request sy_exec_write_request sy_exec_send_request sy_exec_read_state sy_scheduler "$call" $(compgen -A function "sy_${SY_SCHEDULER}_")
        printf '%s "$@"\n' "$call"
    } >"$file" && chmod 700 "$file" || return
    agent=$file
    if [[ $agent == *[^A-Za-z0-9_./+-]* ]]; then
        start=(env "PATH=$SY_ATTEMPT_DIR:$PATH") agent=${file##*/}
    fi
}

# Start a daemon of Open MPI, which finds the agent by PATH, too.
sy_mpi_start_daemon() { # <node> <command line>
    sy_on_node "$1" bash -c "PATH=\$0:\$PATH; ${*:2}" "${0%/*}"
}

# Start a proxy of Hydra. Hydra waits forever for a proxy that did not start: it is stopped then.
sy_mpi_start_proxy() { # <node> <command line>
    local -r started=$0.$BASHPID
    local code
    sy_on_node "$1" bash -c ": >\"\$1\"; exec ${*:2}" - "$started"
    code=$?
    [[ -e $started ]] || kill -s TERM "$PPID"
    rm -f -- "$started"
    return "$code"
}
