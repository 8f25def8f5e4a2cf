# shellcheck shell=bash
# Reads a ROOT tree completely: from a folder, or from an XRootD server, which the run starts on this
# node or the user names.

# Runs before the measured time: records the programs, and tags the file system that it measures.
sy_setup() {
    [[ -z $SY_PARAM_DATA ]] || sy_tag_mount "$SY_PARAM_DATA"
    if [[ $SY_PARAM_ACCESS != file && -z $SY_PARAM_URL ]]; then
        sy_environment xrootd
    fi
}

sy_client() {
    local -r python=${STEELYARD_PYTHON:-python3}
    local -r package=steelyard.jobscripts.hep
    if [[ $SY_PARAM_ACCESS == file || -n $SY_PARAM_URL ]]; then
        "$python" -m "$package.client_controller" roottree
        return
    fi
    # The input may have to be made first.
    sy_server_start "$SY_THIS_NODE" 3600 "$python" -m "$package.xrootd_server" roottree || return
    "$python" -m "$package.client_controller" roottree 127.0.0.1 "$SY_SERVER_WORDS"
}
