# shellcheck shell=bash
# One client of IOzone with a private folder. An iozone that cannot open its files in throughput mode
# waits forever for its child processes: [job] time_out ends it.

sy_find_program() {
    sy_program iozone "$SY_PARAM_IOZONE" \
        'build it from iozone.org or install iozone3 (non-free), and give iozone = "/path/to/iozone"'
}

sy_client() {
    local program code
    local -a options=()
    program=$(sy_find_program) || return
    sy_make_work_folder "$SY_PARAM_DIRECTORY" || return
    sy_iozone_options || return
    sy_measured "$program" "${options[@]}" </dev/null
    code=$?
    sy_save_mount_counters "$SY_WORK" after
    return "$code"
}

sy_iozone_options() { # sets `options` of the caller
    local test i size
    for size in "$SY_PARAM_SIZE" "$SY_PARAM_MOST_SIZE" "$SY_PARAM_RECORD" "$SY_PARAM_MOST_RECORD"; do
        ((size % 1024 == 0)) || {
            sy_log "iozone counts in KiB: $size bytes are not a whole number of them"
            return 2
        }
    done
    for test in $SY_PARAM_TESTS; do
        options+=(-i "$test")
    done
    [[ $SY_PARAM_SYNC != true ]] || options+=(-e -c)
    [[ $SY_PARAM_DIRECT != true ]] || options+=(-I)
    if [[ $SY_PARAM_MODE == auto ]]; then
        options+=(-a -z -n "$((SY_PARAM_SIZE / 1024))k" -g "$((SY_PARAM_MOST_SIZE / 1024))k"
            -y "$((SY_PARAM_RECORD / 1024))k" -q "$((SY_PARAM_MOST_RECORD / 1024))k"
            -f "$SY_WORK/iozone")
        return
    fi
    options+=(-t "$SY_PARAM_PROCESSES" -s "$((SY_PARAM_SIZE / 1024))k"
        -r "$((SY_PARAM_RECORD / 1024))k" -F)
    for ((i = 0; i < SY_PARAM_PROCESSES; i++)); do
        options+=("$SY_WORK/iozone.$i")
    done
}
