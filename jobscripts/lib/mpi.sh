#!/bin/bash
# MPI ranks, on this node or over the job's. Part of steelyard.sh; for benchmarks to call.
# shellcheck disable=SC2034,SC2153 # arrays are the caller's; SY_CLIENTS and SY_CLIENT are two things

# Run a program on so many MPI ranks. The one client of a job with several nodes has all of them,
# in equal shares; clients side by side do not know of each other, and each stays on its own node.
# One rank needs no launcher, nor the daemon that Open MPI would start beside it. Without that all of
# a user's have one folder, jf.0, on a node, and one that ends takes it from one that starts: here
# each has its client's.
sy_mpi_run() { # <ranks> <mpirun> <program> <argument>...
    local ranks=$1 mpirun=$2 launcher said
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
    said=$("$launcher" --version 2>/dev/null)
    sy_tag_nonempty mpirun.version "$(sy_mpi_version "$said")"
    sy_mpi_set_options "$ranks" "$said" || return
    "${start[@]}" "$launcher" "${options[@]}" "$@" </dev/null
}

# `mpirun (Open MPI) 4.1.4`, `HYDRA 4.0.2`: the first line, but for MPICH's, which has it further down.
sy_mpi_version() { # <what the launcher says of its version>
    local line=${1%%$'\n'*}
    if [[ $line == HYDRA* && $1 =~ Version:[[:space:]]+([^[:space:]]+) ]]; then
        line="HYDRA ${BASH_REMATCH[1]}"
    fi
    printf '%s' "$line"
}

# Sets `options`, and `start`, of the caller: the words before the program, and before the launcher.
sy_mpi_set_options() { # <ranks> <what the launcher says of its version>; reads `nodes`
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

# The words that stand before a program whose MPI calls are to be profiled: none, or, with the
# benchmark's parameter profile = true, the profiler and its file (docs/mpi-profile.md).
sy_find_profiler() { # sets `profiler` of the caller
    local program
    profiler=()
    [[ $SY_PARAM_PROFILE == true ]] || return 0
    program=$(sy_program steelyard-mpiprof "${STEELYARD_MPIPROF:-}" \
        'build it with make all (needs mpicc: Debian package libopenmpi-dev), and set STEELYARD_MPIPROF or PATH') || return
    # shellcheck disable=SC2034 # the caller's
    profiler=("$program" "$SY_ATTEMPT_DIR/mpiprof.$SY_CLIENT.json")
}

# --- who gets how many -----------------------------------------------------------------------

# Equal shares of the nodes, which differ by one at most. Where the job has its slots given out
# unequally, those that get one more are the first with room for it; where equal shares do not fit,
# what the study asks for and what the job was given disagree, and nobody guesses.
sy_mpi_share_ranks() { # <ranks>; reads `nodes`, sets `shares` of the caller
    local i slots said='' more=$(($1 % ${#nodes[@]})) fits=1
    local -r each=$(($1 / ${#nodes[@]}))
    for i in "${!nodes[@]}"; do
        slots=$(sy_scheduler slots "${nodes[i]}")
        said+="${said:+, }${nodes[i]} ${slots:-any}"
        shares[i]=$each
        ((more == 0 || ${slots:-$1} <= each)) || shares[i]=$((each + 1)) more=$((more - 1))
        ((${slots:-$1} >= shares[i])) || fits=
    done
    [[ -n $fits ]] && ((more == 0)) && return
    sy_log "$1 ranks in equal shares on ${#nodes[@]} nodes do not fit into the job's slots ($said): ask for as many processors on each node as it gets ranks"
    return 2
}

# NODE:RANKS for every node that has any, commas between.
sy_mpi_format_hosts() { # reads `nodes` and `shares`
    local i list=''
    for i in "${!nodes[@]}"; do
        ((shares[i] == 0)) || list+=${list:+,}${nodes[i]}:${shares[i]}
    done
    printf '%s' "$list"
}

# --- Open MPI --------------------------------------------------------------------------------

# All on this node, over shared memory. Looking for fabrics (openib, ofi) takes a second a start.
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
    # Waiting ranks spin: with more ranks than processors they would keep the others from work.
    (($1 * sharers <= $(nproc))) || options+=(--mca mpi_yield_when_idle 1)
}

# Over the nodes of the job. An mpirun that can ask the scheduler itself does; else Open MPI's daemons
# are started by sy_on_node (it calls its "rsh agent" with node and command line), which works under
# every scheduler and leaves out Open MPI's own knowledge of them. Messages go by TCP over the networks
# of the nodes' addresses.
sy_open_mpi_set_multinode() { # <ranks>; reads `nodes`, `shares`, `launcher`; sets `start`, `options`
    local networks most=0 i btl=self,vader,tcp
    if [[ -n ${SY_PEERS:-} ]]; then
        networks=$(sy_peers_list_networks)
    else
        networks=$(sy_mpi_list_networks) || return
    fi
    # Nodes of a throwaway cluster are one machine, where two ranks of one number on their nodes would
    # take each other's memory in /dev/shm.
    [[ $networks != 127.* ]] || btl=self,tcp
    for i in "${shares[@]}"; do
        ((i <= most)) || most=$i
    done
    # A container's mpirun is another one than the node's, and cannot reach the scheduler.
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
    # As in sy_open_mpi_set_local; said either way, since mpirun would judge by slots.
    options+=(--mca mpi_yield_when_idle "$((most * ${SY_SHARERS:-1} > $(nproc)))")
}

sy_open_mpi_add_agent() { # adds to `options`, may set `start`
    local agent
    sy_mpi_make_agent || return
    options+=(--mca plm rsh --mca ras '^slurm,tm' --mca plm_rsh_agent "$agent"
        --mca plm_rsh_no_tree_spawn 1)
    # A daemon that goes into the background ends its container, and its task of PBS: pbs_mom kills
    # what is left of it, which may be the daemon on its way to a session of its own.
    options+=(--leave-session-attached)
}

# ADDRESS/PREFIX of every node, commas between.
sy_mpi_list_networks() { # reads `nodes`
    local node address prefix='' list=''
    for node in "${nodes[@]}"; do
        address=$(sy_node_address "$node") || return
        # Open MPI takes a /32 for "loopback too", and then mistakes one rank for another.
        prefix=${prefix:-$(sy_prefix_length "$address")}
        list+=${list:+,}$address/$prefix
    done
    printf '%s' "$list"
}

# How many bits of an address of this node name its network.
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

# MPICH's launcher is called Hydra. Its "rsh" gets node and command line, as Open MPI's does.
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

# A program of its own, since mpirun executes it: the functions above, and one call. Sets `agent` of the
# caller, and `start`: both launchers take a path apart at blanks, and look for a name by PATH.
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

# Open MPI's daemons look for their agent, too.
sy_mpi_start_daemon() { # <node> <command line>
    sy_on_node "$1" bash -c "PATH=\$0:\$PATH; ${*:2}" "${0%/*}"
}

# For Hydra, which waits for ever for a proxy that never began: it is stopped then.
sy_mpi_start_proxy() { # <node> <command line>
    local -r begun=$0.$BASHPID
    local code
    sy_on_node "$1" bash -c ": >\"\$1\"; exec ${*:2}" - "$begun"
    code=$?
    [[ -e $begun ]] || kill -s TERM "$PPID"
    rm -f -- "$begun"
    return "$code"
}
