# shellcheck shell=bash
# The IO500, the user's own program and configuration, all ranks of a job at once. The last value of a
# key counts: the run's folders are appended to the user's file.

sy_find_program() {
    sy_program io500 "$SY_PARAM_PROGRAM" 'give program = "/path/to/io500"'
}

sy_client() {
    local program code
    program=$(sy_find_program) || return
    [[ -f $SY_PARAM_CONFIG && -r $SY_PARAM_CONFIG ]] || {
        sy_log "$SY_PARAM_CONFIG: no configuration that can be read on $HOSTNAME"
        return 2
    }
    sy_make_work_folder "$SY_PARAM_DIRECTORY" || return
    mkdir -- "$SY_WORK/results" || return
    {
        cat -- "$SY_PARAM_CONFIG"
        printf '\n[global]\ndatadir = %s\nresultdir = %s\n' "$SY_WORK/data" "$SY_WORK/results"
        printf 'timestamp-datadir = FALSE\ntimestamp-resultdir = FALSE\n'
    } >"$SY_WORK/config.ini" || return
    cp -- "$SY_WORK/config.ini" "$SY_ATTEMPT_DIR/io500.$SY_CLIENT.ini" || return
    sy_without_scheduler
    sy_mpi_run "$SY_PARAM_RANKS" "$SY_PARAM_MPIRUN" "$program" "$SY_WORK/config.ini"
    code=$?
    cp -- "$SY_WORK/results/result.txt" "$SY_ATTEMPT_DIR/io500.$SY_CLIENT.txt" || :
    sy_save_mount_counters "$SY_WORK" after
    return "$code"
}
