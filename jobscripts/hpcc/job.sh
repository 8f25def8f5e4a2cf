# shellcheck shell=bash
# One client of HPC Challenge: p × q ranks, in the fresh scratch folder (hpcc appends to its output
# file). stdout is that file; hpcc's own output goes to stderr.

# Runs before the measured time: records the programs and their versions.
sy_setup() {
    local program
    program=$(sy_hpcc_program) || return
    sy_environment "$program"
    sy_tag_blas "$program"
}

sy_hpcc_program() {
    sy_program hpcc "$SY_PARAM_HPCC" \
        'install the Debian package hpcc, or give hpcc = "/path/to/hpcc"'
}

sy_client() {
    local program code
    program=$(sy_hpcc_program) || return
    sy_hpl_print_input >hpccinf.txt || return
    cp -- hpccinf.txt "$SY_ATTEMPT_DIR/hpl.$SY_CLIENT.dat" || return
    sy_without_scheduler
    sy_hpl_set_threads
    sy_mpi_run "$((SY_PARAM_P * SY_PARAM_Q))" "$SY_PARAM_MPIRUN" "$program" >&2
    code=$?
    [[ -e hpccoutf.txt ]] || ((code == 0)) || return "$code" # its stderr has the reason
    cat hpccoutf.txt || return
    return "$code"
}
