# shellcheck shell=bash
# One client of HPCG, the user's own program. It reads hpcg.dat in its working directory, and writes one
# document there, this client's output: HPCG-Benchmark*.txt (3.1) or .yaml (3.0), Intel's n104-8p-1t*.txt.

sy_find_program() {
    sy_program xhpcg "$SY_PARAM_PROGRAM" 'give program = "/path/to/xhpcg"'
}

sy_client() {
    local program code
    local -a found
    program=$(sy_find_program) || return
    printf 'HPCG benchmark input file\nby Steelyard\n%d %d %d\n%d\n' \
        "$SY_PARAM_NX" "$SY_PARAM_NY" "$SY_PARAM_NZ" "$SY_PARAM_SECONDS" >hpcg.dat || return
    sy_without_scheduler
    export OMP_NUM_THREADS=$SY_PARAM_THREADS
    sy_mpi_run "$SY_PARAM_RANKS" "$SY_PARAM_MPIRUN" "$program" >&2
    code=$?
    ((code == 0)) || return "$code"
    shopt -s nullglob
    found=(HPCG-Benchmark*.txt HPCG-Benchmark*.yaml n*-*p-*t*.txt n*-*p-*t*.yaml)
    ((${#found[@]} == 1)) || {
        sy_log "$program left ${#found[@]} documents HPCG-Benchmark* or nNX-RANKSp-THREADSt* (.txt, .yaml), one is expected"
        return 1
    }
    cat -- "${found[0]}"
}
