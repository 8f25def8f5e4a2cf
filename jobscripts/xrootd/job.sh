# shellcheck shell=bash
# A physics analysis, or a copy, of a file behind an XRootD server: one that the run starts itself,
# on the job's second node if there is one, or a given one. The clients run on the first node.

# Not timed: what the run ran with.
sy_setup() {
    [[ $SY_PARAM_MODE != xrdcp ]] || sy_environment xrdcp
    if [[ $SY_PARAM_MODE != local && -z $SY_PARAM_URL ]]; then
        sy_environment xrootd
    fi
}

sy_client() {
    local node address=''
    local -r python=${STEELYARD_PYTHON:-python3}
    local -r package=steelyard.jobscripts.hep
    if [[ $SY_PARAM_MODE == local || -n $SY_PARAM_URL ]]; then
        "$python" -m "$package.client" xrootd
        return
    fi
    node=$(sy_xrootd_node) || return
    # The input may have to be made first: up to 20 s for a million events.
    sy_server_start "$node" 3600 "$python" -m "$package.server" xrootd || return
    address=$(sy_xrootd_address "$node") || return
    sy_tag server_node "$node"
    "$python" -m "$package.client" xrootd "$address" "$SY_SERVER_WORDS"
}

# The second node of the job, else the first.
sy_xrootd_node() {
    local -a nodes
    mapfile -t nodes < <(sy_nodes)
    ((${#nodes[@]} > 0)) || return 1
    [[ $SY_PARAM_SERVER == same ]] || nodes[0]=${nodes[1]:-${nodes[0]}}
    printf '%s\n' "${nodes[0]}"
}

sy_xrootd_address() { # <node>
    local first
    first=$(sy_nodes | head -n 1)
    if [[ $1 == "$first" ]]; then
        printf '127.0.0.1\n'
    else
        sy_node_address "$1"
    fi
}
