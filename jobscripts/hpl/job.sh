# shellcheck shell=bash
# One client of HPL: p × q ranks, in the fresh scratch folder (hpcc appends to its output file).
# stdout is the one document that parse.py reads; all else goes to stderr.

# Runs before the measured time: records the programs and their versions.
sy_setup() {
    local program
    program=$(sy_hpl_program) || return
    sy_environment "$program"
    sy_tag_blas "$program"
}

sy_hpl_program() {
    sy_program "${SY_PARAM_XHPL:-hpcc}" "$SY_PARAM_XHPL" \
        'install the Debian package hpcc, or give xhpl = "/path/to/xhpl"'
}

sy_client() {
    local program code input=hpccinf.txt
    local -a profiler
    local -r ranks=$((SY_PARAM_P * SY_PARAM_Q))
    [[ -z $SY_PARAM_XHPL ]] || input=HPL.dat
    program=$(sy_hpl_program) || return
    sy_hpl_print_input >"$input" || return
    cp -- "$input" "$SY_ATTEMPT_DIR/hpl.$SY_CLIENT.dat" || return
    sy_find_profiler || return
    sy_without_scheduler
    sy_hpl_set_threads
    if [[ -n $SY_PARAM_XHPL ]]; then
        sy_mpi_run "$ranks" "$SY_PARAM_MPIRUN" "${profiler[@]}" "$program"
        return
    fi
    sy_mpi_run "$ranks" "$SY_PARAM_MPIRUN" "${profiler[@]}" "$program" >&2
    code=$?
    [[ -e hpccoutf.txt ]] || ((code == 0)) || return "$code" # its stderr has the reason
    cat hpccoutf.txt || return
    return "$code"
}
