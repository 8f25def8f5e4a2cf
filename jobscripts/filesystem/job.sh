# shellcheck shell=bash
# One client of the file-system tests. The parameters are SY_PARAM_*; STEELYARD_FSTEST may name the
# program. The program makes a folder below `directory` and removes it.

sy_find_program() {
    sy_program steelyard-fstest "${STEELYARD_FSTEST:-}" \
        'build it with make all, and set STEELYARD_FSTEST or PATH'
}

sy_client() {
    local program code rest_ms
    local -r directory=${SY_PARAM_DIRECTORY:-$SY_SCRATCH}
    local -a options=()
    program=$(sy_find_program) || return
    [[ $SY_PARAM_DIRECT != true ]] || options=(--direct)
    [[ $SY_PARAM_OVERWRITE != true ]] || options+=(--keep)
    rest_ms=$(sy_milliseconds "$SY_PARAM_REST")
    ((rest_ms == 0)) || options+=(--rest "$rest_ms")
    [[ $SY_PARAM_PROCESS != each ]] || options+=(--process each --local "$SY_SCRATCH")
    sy_tag_mount "$directory"
    sy_save_mount_counters "$directory" before
    sy_measured "$program" \
        --test "$SY_PARAM_TEST" \
        --directory "$directory" \
        --size "$SY_PARAM_SIZE" \
        --files "$(sy_fstest_files)" \
        --file-size "$SY_PARAM_FILE_SIZE" \
        --iterations "$SY_PARAM_ITERATIONS" \
        --buffer "$SY_PARAM_BUFFER" \
        --sync "$SY_PARAM_SYNC" \
        "${options[@]}"
    code=$?
    sy_save_mount_counters "$directory" after
    return "$code"
}

# Convert seconds to milliseconds.
sy_milliseconds() {
    LC_ALL=C printf '%.0f' "${1}e3"
}

sy_fstest_files() {
    case $SY_PARAM_TEST in
    small_file_copy) printf '%s' "$SY_PARAM_COPY_FILES" ;;
    small_file_write) printf '%s' "$SY_PARAM_WRITE_FILES" ;;
    *) printf '1' ;;
    esac
}
