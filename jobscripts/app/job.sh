# shellcheck shell=bash
# shellcheck disable=SC2154 # SY_WORDS_ENV is of run.sh
# One client of a command of the user's. What it prints is out.CLIENT; its times stand in
# ATTEMPT/app.CLIENT, a line an iteration: exit code, start and end (µs of the wall clock), uptimes
# then (µs, or -).

sy_client() {
    local iteration
    : >"$SY_ATTEMPT_DIR/app.$SY_CLIENT" || return
    for ((iteration = 1; iteration <= SY_PARAM_ITERATIONS; iteration++)); do
        sy_run_command "$((iteration > 1 ? iteration : 0))" || return
    done
}

sy_run_command() { # <number of the iteration, 0: the first>
    local code start end start_up end_up suffix=.$1
    local -a repositories
    read -r -a repositories <<<"$SY_PARAM_CVMFS"
    sy_cvmfs_counters "before${suffix%.0}" ${repositories[@]+"${repositories[@]}"} || return
    sy_read_uptime start_up
    start=${EPOCHREALTIME//[^0-9]/}
    (
        [[ -z ${SY_WORDS_ENV[*]-} ]] || export "${SY_WORDS_ENV[@]}"
        sy_measured "$BASH" -c "$SY_PARAM_COMMAND"
    ) </dev/null
    code=$?
    end=${EPOCHREALTIME//[^0-9]/}
    sy_read_uptime end_up
    printf '%d %s %s %s %s\n' "$code" "$start" "$end" "${start_up:--}" "${end_up:--}" \
        >>"$SY_ATTEMPT_DIR/app.$SY_CLIENT" || return
    sy_cvmfs_counters "after${suffix%.0}" ${repositories[@]+"${repositories[@]}"} || return
    return "$code"
}
