#!/bin/bash
# The job's nodes, and programs on them. Part of steelyard.sh; for benchmarks to call.
#
# A benchmark needs no other way to another node: sy_nodes prints the nodes, this one first, and sy_on_node
# runs a command there without input, with its exit code, in that node's container if the client has
# containers. Without a scheduler the only node is this host. sy_without_scheduler hides the job from
# another launcher; the functions here still work after it.
# shellcheck disable=SC2153 # SY_CLIENTS and SY_CLIENT are two things

# --- nodes -----------------------------------------------------------------------------------

# Set an array to the lines that a command prints. This shell waits for the command: a reader of <(…)
# may end before it, and the record would lack its usage.
sy_lines() { # <array> <command> <argument>...
    local -n sy_lines_found=$1
    local sy_lines_text
    sy_lines_text=$("${@:2}") || :
    sy_lines_found=()
    # shellcheck disable=SC2034 # the caller's
    [[ -z $sy_lines_text ]] || mapfile -t sy_lines_found <<<"$sy_lines_text"
}

# Print the job's nodes, one a line, this client's own first; without a scheduler this host.
sy_nodes() {
    sy_scheduler nodes
}

# Print an address that the job's other nodes reach: the scheduler's, or the one that the name resolves to.
sy_node_address() { # <node>
    local address line
    address=$(sy_scheduler node_address "$1") || return
    if [[ ! $address =~ ^[0-9.]+$ && $address != *:* ]]; then
        line=$(getent ahosts -- "$address") || {
            sy_log "the address of node $1 is not known: $address does not resolve on $HOSTNAME"
            return 1
        }
        address=${line%% *}
    fi
    printf '%s\n' "$address"
}

# Run a command on a node of the job, this one included; called in a container, in that node's container.
# The command has no input; the exit code is the command's.
sy_on_node() { # <node> <command> <argument>...
    local node=$1
    shift
    if [[ -n ${SY_PEERS:-} ]]; then
        sy_exec_run_in_peer "$node" "$@" </dev/null
    elif sy_scheduler is_this_node "$node"; then
        "$@" </dev/null
    else
        sy_scheduler on_node "$node" "$@" </dev/null
    fi
}

# Write a script for programs that are no shell: `bash FILE NODE COMMAND ARGUMENT…` calls sy_on_node.
sy_on_node_script() { # <file>
    { declare -f && printf 'sy_on_node "$@"\n'; } >"$1"
}

# --- programs --------------------------------------------------------------------------------

# Print a program's path, from its variable or else by PATH; or log that it is missing.
sy_program() { # <program> <path from a variable, may be empty> <what to do>
    local path=$2
    if [[ -n $path ]]; then
        [[ -f $path && -x $path ]] && printf '%s' "$path" && return 0
        sy_log "$path: no program that can be run"
        return 3
    fi
    path=$(type -P -- "$1") && printf '%s' "$path" && return 0
    sy_log "$1 is missing on $HOSTNAME: $3"
    return 3
}

# Unset the scheduler's variables, for benchmarks with another launcher (mpirun): it must not detect the job.
sy_without_scheduler() {
    local name
    # shellcheck disable=SC2046 # names of variables
    for name in "${!PMI_@}" "${!PMIX_@}" "${!PMI2_@}" "${!OMPI_@}" "${!PRTE_@}" \
        $(sy_every_scheduler variables); do
        unset "$name"
    done
}
