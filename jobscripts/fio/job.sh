# shellcheck shell=bash
# One client of fio with a private folder. fio prints notes before its JSON; the JSON goes to a file
# first, so that stdout has nothing else.

sy_find_program() {
    sy_program fio "$SY_PARAM_FIO" \
        'install the Debian package fio, or give fio = "/path/to/fio"'
}

# fio's JSON does not say whether groups ran at once (new_group) or one after another (stonewall).
sy_fio_check_job_file() {
    [[ -n $SY_PARAM_JOB_FILE ]] && grep -qs '^[[:space:]]*new_group' -- "$SY_PARAM_JOB_FILE" || return 0
    sy_log "$SY_PARAM_JOB_FILE has new_group, but groups have to run one after another: use stonewall"
    return 1
}

sy_client() {
    local program code
    local -a options=()
    program=$(sy_find_program) || return
    sy_fio_check_job_file || return
    sy_make_work_folder "$SY_PARAM_DIRECTORY" || return
    sy_fio_options
    sy_measured "$program" --output="$SY_SCRATCH/fio.json" --output-format=json --directory="$SY_WORK" \
        "${options[@]}" >&2 </dev/null
    code=$?
    sy_save_mount_counters "$SY_WORK" after
    cat -- "$SY_SCRATCH/fio.json" || return
    return "$code"
}

sy_fio_options() { # sets `options` of the caller
    if [[ -n $SY_PARAM_JOB_FILE ]]; then
        options=("$SY_PARAM_JOB_FILE")
        return
    fi
    options=(--group_reporting --lat_percentiles=1 --clat_percentiles=0 --name=steelyard
        --directory="$SY_WORK" --rw="$SY_PARAM_RW" --bs="$SY_PARAM_BS" --size="$SY_PARAM_SIZE"
        --numjobs="$SY_PARAM_NUMJOBS" --iodepth="$SY_PARAM_IODEPTH"
        --ioengine="$SY_PARAM_IOENGINE" --direct="$(sy_fio_flag "$SY_PARAM_DIRECT")"
        --end_fsync="$(sy_fio_flag "$SY_PARAM_END_FSYNC")")
    ((SY_PARAM_RUNTIME == 0)) || options+=(--time_based=1 --runtime="$SY_PARAM_RUNTIME")
}

sy_fio_flag() { # <true|false>
    [[ $1 == true ]] && printf 1 || printf 0
}
