# shellcheck shell=bash
# Messages between the job's nodes: all ranks run one program in Python, started from the first node.

# Runs before the measured time: records the programs and their versions.
sy_setup() {
    sy_environment "$SY_PARAM_MPIRUN" "${STEELYARD_PYTHON:-python3}"
}

sy_client() {
    local -a profiler
    if ((SY_PARAM_SMALLEST > SY_PARAM_LARGEST)); then
        sy_log "smallest is $SY_PARAM_SMALLEST bytes, more than largest, $SY_PARAM_LARGEST bytes"
        return 2
    fi
    sy_find_profiler || return
    sy_without_scheduler
    sy_mpi_run "$SY_PARAM_RANKS" "$SY_PARAM_MPIRUN" "${profiler[@]}" \
        "${STEELYARD_PYTHON:-python3}" -P -m steelyard.jobscripts.mpi.client \
        --test "$SY_PARAM_TEST" --smallest "$SY_PARAM_SMALLEST" --largest "$SY_PARAM_LARGEST" \
        --iterations "$SY_PARAM_ITERATIONS" --warm-up "$SY_PARAM_WARM_UP_ITERATIONS" \
        --repetitions "$SY_PARAM_REPETITIONS" --tags "$SY_ATTEMPT_DIR/tags.$SY_CLIENT"
}
