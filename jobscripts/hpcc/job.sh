# shellcheck shell=bash
# One client of HPC Challenge: p × q ranks, in the fresh scratch folder (hpcc appends to its output
# file). stdout is that file; hpcc's own output goes to stderr.

# Runs before the measured time: records the programs and their versions.
sy_setup() {
    local program
    program=$(sy_find_program) || return
    sy_environment "$program"
    sy_tag_blas "$program"
}

sy_find_program() {
    sy_program hpcc "$SY_PARAM_HPCC" \
        'install the Debian package hpcc, or give hpcc = "/path/to/hpcc"'
}

sy_client() {
    local program
    program=$(sy_find_program) || return
    sy_hpl_write_input hpccinf.txt || return
    sy_without_scheduler
    sy_hpl_set_threads
    sy_hpcc_run "$program"
}
