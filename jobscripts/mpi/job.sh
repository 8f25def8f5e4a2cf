# shellcheck shell=bash
# Messages between the job's nodes: all ranks are one program, in Python or in C, started from the
# first node.

# Not timed: what the run ran with.
sy_setup() {
    local -a program
    sy_mpi_program || return
    sy_environment "$SY_PARAM_MPIRUN" "${program[0]}"
}

sy_mpi_program() { # sets `program` of the caller
    local path
    if [[ $SY_PARAM_PROGRAM == python ]]; then
        program=("${STEELYARD_PYTHON:-python3}" -P -m steelyard.jobscripts.mpi.client)
        return
    fi
    path=$(sy_program steelyard-mpitest "${STEELYARD_MPITEST:-}" \
        'build it with make all (needs mpicc: Debian package libopenmpi-dev), and set STEELYARD_MPITEST or PATH') || return
    program=("$path")
}

sy_client() {
    local -a profiler program
    if ((SY_PARAM_SMALLEST > SY_PARAM_LARGEST)); then
        sy_say "smallest is $SY_PARAM_SMALLEST bytes, more than largest, $SY_PARAM_LARGEST bytes"
        return 2
    fi
    sy_mpi_program || return
    sy_tag mpi.program "$SY_PARAM_PROGRAM"
    sy_profiler || return
    sy_without_scheduler
    sy_mpi_run "$SY_PARAM_RANKS" "$SY_PARAM_MPIRUN" "${profiler[@]}" \
        "${program[@]}" \
        --test "$SY_PARAM_TEST" --smallest "$SY_PARAM_SMALLEST" --largest "$SY_PARAM_LARGEST" \
        --iterations "$SY_PARAM_ITERATIONS" --warm-up "$SY_PARAM_WARM_UP_ITERATIONS" \
        --repetitions "$SY_PARAM_REPETITIONS" --tags "$SY_ATTEMPT_DIR/tags.$SY_CLIENT"
}
