# shellcheck shell=bash
# I/O of all ranks of a job at once, in one fresh folder of a file system that all nodes share.

# Not timed: what the run ran with.
sy_setup() {
    local program
    program=$(sy_ior_program) || return
    sy_environment "$program" "$SY_PARAM_MPIRUN"
}

sy_ior_program() {
    sy_program steelyard-iotest "${STEELYARD_IOTEST:-}" \
        'build it with make all (needs mpicc: Debian package libopenmpi-dev), and set STEELYARD_IOTEST or PATH'
}

sy_client() {
    local program code
    program=$(sy_ior_program) || return
    sy_work_in "$SY_PARAM_DIRECTORY" || return
    sy_without_scheduler
    sy_mpi_run "$SY_PARAM_RANKS" "$SY_PARAM_MPIRUN" "$program" --directory "$SY_WORK" \
        --pattern "$SY_PARAM_PATTERN" --transfer "$SY_PARAM_TRANSFER" --block "$SY_PARAM_BLOCK" \
        --files "$SY_PARAM_FILES" --stonewall "$SY_PARAM_STONEWALL_S"
    code=$?
    sy_mount_counters "$SY_WORK" after
    return "$code"
}
