# shellcheck shell=bash
# IOR, the user's own program: all ranks of a job at once, in one fresh folder of a file system that all
# nodes share. Where its JSON is read, its text goes to stderr.

sy_find_program() {
    sy_program ior "$SY_PARAM_PROGRAM" 'give program = "/path/to/ior"'
}

sy_client() {
    local program code
    local -a options
    program=$(sy_find_program) || return
    sy_make_work_folder "$SY_PARAM_DIRECTORY" || return
    read -r -a options <<<"$SY_PARAM_OPTIONS"
    options+=(-i "$SY_PARAM_REPETITIONS" -o "$SY_WORK/data")
    sy_without_scheduler
    if [[ $SY_PARAM_SUMMARY == json ]]; then
        options+=(-O summaryFormat=JSON -O "summaryFile=$SY_SCRATCH/ior.json")
        sy_mpi_run "$SY_PARAM_RANKS" "$SY_PARAM_MPIRUN" "$program" "${options[@]}" >&2
        code=$?
        [[ ! -e $SY_SCRATCH/ior.json ]] || cat -- "$SY_SCRATCH/ior.json"
    else
        sy_mpi_run "$SY_PARAM_RANKS" "$SY_PARAM_MPIRUN" "$program" "${options[@]}"
        code=$?
    fi
    sy_save_mount_counters "$SY_WORK" after
    return "$code"
}
