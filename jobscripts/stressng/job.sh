# shellcheck shell=bash
# One client of stress-ng: one stressor, its table as YAML on stdout, its messages on stderr.

sy_find_program() {
    sy_program stress-ng "$SY_PARAM_PROGRAM" \
        'install the Debian package stress-ng, or give program = "/path/to/stress-ng"'
}

sy_client() {
    local program code workers=$SY_PARAM_WORKERS
    local -a options
    program=$(sy_find_program) || return
    [[ " $("$program" --stressors) " == *" $SY_PARAM_STRESSOR "* ]] || {
        sy_log "$program has no stressor $SY_PARAM_STRESSOR: '$program --stressors' names those that it has"
        return 2
    }
    # To stress-ng 0 means all processors of the node, not the job's.
    ((workers > 0)) || workers=$(nproc) || return
    options=("--$SY_PARAM_STRESSOR" "$workers" --timeout "${SY_PARAM_SECONDS}s" --verify
        --no-rand-seed --metrics --temp-path "$SY_SCRATCH" --yaml "$SY_SCRATCH/stress-ng.yaml")
    [[ -z $SY_PARAM_METHOD ]] || options+=("--$SY_PARAM_STRESSOR-method" "$SY_PARAM_METHOD")
    sy_measured "$program" "${options[@]}" >&2 </dev/null
    code=$?
    ((code == 0)) || return "$code"
    cat -- "$SY_SCRATCH/stress-ng.yaml"
}
