# shellcheck shell=bash
# One client of the file-system tests. The parameters come as SY_PARAM_*; STEELYARD_FSTEST may
# name the program. A client works in a folder of its own below `directory` and removes it.

sy_client() {
    local program
    program=$(sy_program steelyard-fstest "${STEELYARD_FSTEST:-}" \
        'build it with make all, and set STEELYARD_FSTEST or PATH') || return
    exec "$program" \
        --test "$SY_PARAM_TEST" \
        --directory "${SY_PARAM_DIRECTORY:-$SY_SCRATCH}" \
        --size "$SY_PARAM_SIZE" \
        --files "$(sy_fstest_files)" \
        --file-size "$SY_PARAM_FILE_SIZE" \
        --iterations "$SY_PARAM_ITERATIONS" \
        --buffer "$SY_PARAM_BUFFER" \
        --sync "$SY_PARAM_SYNC"
}

sy_fstest_files() {
    case $SY_PARAM_TEST in
    small_file_copy) printf '%s' "$SY_PARAM_COPY_FILES" ;;
    small_file_write) printf '%s' "$SY_PARAM_WRITE_FILES" ;;
    *) printf '1' ;;
    esac
}
