# shellcheck shell=bash
# One client of HPL: p × q ranks, in the fresh scratch folder (hpcc appends to its output file).
# stdout is the one document that parse.py reads; all else goes to stderr.

# Runs before the measured time: records the programs and their versions.
sy_setup() {
    local program
    program=$(sy_find_program) || return
    sy_environment "$program"
    sy_tag_blas "$program"
}

sy_find_program() {
    sy_program "${SY_PARAM_XHPL:-hpcc}" "$SY_PARAM_XHPL" \
        'install the Debian package hpcc, or give xhpl = "/path/to/xhpl"'
}

sy_client() {
    local program input=hpccinf.txt
    local -a profiler
    [[ -z $SY_PARAM_XHPL ]] || input=HPL.dat
    program=$(sy_find_program) || return
    sy_hpl_write_input "$input" || return
    sy_find_profiler || return
    sy_without_scheduler
    sy_hpl_set_threads
    if [[ -z $SY_PARAM_XHPL ]]; then
        sy_hpcc_run "${profiler[@]}" "$program"
        return
    fi
    sy_mpi_run "$((SY_PARAM_P * SY_PARAM_Q))" "$SY_PARAM_MPIRUN" "${profiler[@]}" "$program"
}
