# shellcheck shell=bash
# mdtest, the user's own program: all ranks of a job at once, in one fresh folder of a file system that
# all nodes share. One iteration: its table of several iterations has only their mean.

sy_find_program() {
    sy_program mdtest "$SY_PARAM_PROGRAM" 'give program = "/path/to/mdtest"'
}

sy_client() {
    local program code
    local -a more options=(-i 1 -P -n "$SY_PARAM_FILES")
    program=$(sy_find_program) || return
    sy_make_work_folder "$SY_PARAM_DIRECTORY" || return
    case $SY_PARAM_KIND in
    files) options+=(-F) ;;
    directories) options+=(-D) ;;
    esac
    read -r -a more <<<"$SY_PARAM_OPTIONS"
    sy_without_scheduler
    sy_mpi_run "$SY_PARAM_RANKS" "$SY_PARAM_MPIRUN" "$program" "${options[@]}" \
        ${more[@]+"${more[@]}"} -d "$SY_WORK/mdtest"
    code=$?
    sy_save_mount_counters "$SY_WORK" after
    return "$code"
}
