# shellcheck shell=bash
# One client of STREAM: steelyard-stream, or the user's own program; all threads on this node.

sy_find_program() {
    sy_program "${SY_PARAM_STREAM:-steelyard-stream}" "${SY_PARAM_STREAM:-${STEELYARD_STREAM:-}}" \
        'build it with make all, and set STEELYARD_STREAM or PATH, or give stream = "/path/to/stream"'
}

sy_client() {
    local program
    program=$(sy_find_program) || return
    ((SY_PARAM_THREADS == 0)) || export OMP_NUM_THREADS=$SY_PARAM_THREADS
    if [[ -n $SY_PARAM_STREAM ]]; then
        sy_measured "$program"
        return
    fi
    sy_measured "$program" "$SY_PARAM_ELEMENTS" "$SY_PARAM_REPETITIONS"
}
