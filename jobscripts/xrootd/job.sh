# shellcheck shell=bash
# A physics analysis, or a copy, of a file from an XRootD server. The run starts the server on the job's
# second node, if there is one, or uses a given one. The clients run on the job's other nodes.

# Runs before the measured time: records the programs and their versions.
sy_setup() {
    [[ $SY_PARAM_MODE != xrdcp ]] || sy_environment xrdcp
    if [[ $SY_PARAM_MODE != local && -z $SY_PARAM_URL ]]; then
        sy_environment xrootd
    fi
}

sy_client() {
    local node='' address=''
    if [[ $SY_PARAM_MODE == command && -z $SY_PARAM_COMMAND ]]; then
        sy_log 'mode = command: expected command = "PROGRAM … {url}", found none'
        return 3
    fi
    local -r python=${STEELYARD_PYTHON:-python3}
    local -r package=steelyard.jobscripts.hep
    if [[ $SY_PARAM_MODE == local ]]; then
        "$python" -m "$package.client_controller" xrootd
        return
    fi
    if [[ -n $SY_PARAM_URL ]]; then
        sy_xrootd_client_nodes || return
        "$python" -m "$package.client_controller" xrootd
        return
    fi
    node=$(sy_xrootd_node) || return
    # The input may have to be made first: up to 20 s for a million events.
    sy_server_start "$node" 3600 "$python" -m "$package.xrootd_server" xrootd || return
    address=$(sy_xrootd_address "$node") || return
    sy_tag server_node "$node"
    sy_xrootd_client_nodes "$node" || return
    "$python" -m "$package.client_controller" xrootd "$address" "$SY_SERVER_WORDS"
}

# Set the variables of the client's program: the nodes with clients, this one first, and how it reaches
# the others.
sy_xrootd_client_nodes() { # [<the server's node>]
    local -a nodes=() found=()
    local node
    sy_lines nodes sy_nodes
    for node in "${nodes[@]}"; do
        [[ $node == "${1:-}" ]] || found+=("$node")
    done
    # The server runs on this node: all clients do.
    [[ ${nodes[0]} != "${1:-}" ]] || found=("${nodes[0]}")
    ((SY_PARAM_CLIENT_NODES == 0)) || found=("${found[@]:0:SY_PARAM_CLIENT_NODES}")
    found=("${found[@]:0:SY_PARAM_CLIENTS}")
    if ((SY_PARAM_CLIENT_NODES > ${#found[@]})); then
        sy_log "client_nodes = $SY_PARAM_CLIENT_NODES: expected at most as many as there are clients \
and nodes beside the server's, found ${#found[@]}: give [job] nodes, or clients, more of them"
        return 3
    fi
    export SY_HEP_NODES="${found[*]}"
    sy_tag client_nodes "$SY_HEP_NODES"
    ((${#found[@]} > 1)) || return 0
    export SY_HEP_SCRIPT=$SY_ATTEMPT_DIR/on_node.$SY_CLIENT.sh
    sy_on_node_script "$SY_HEP_SCRIPT" || return
    SY_HEP_ADDRESS=$(sy_node_address "${found[0]}") || return
    export SY_HEP_ADDRESS
}

# Print the server's node: the second node of the job, else the first.
sy_xrootd_node() {
    local -a nodes
    sy_lines nodes sy_nodes
    ((${#nodes[@]} > 0)) || return 1
    [[ $SY_PARAM_SERVER == same ]] || nodes[0]=${nodes[1]:-${nodes[0]}}
    printf '%s\n' "${nodes[0]}"
}

sy_xrootd_address() { # <node>
    local first
    first=$(sy_nodes | head -n 1)
    # With the server on this node all clients are on it.
    if [[ $1 == "$first" ]]; then
        printf '127.0.0.1\n'
    else
        sy_node_address "$1"
    fi
}
