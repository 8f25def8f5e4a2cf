# shellcheck shell=bash
# One client of a command of the user's. What it prints is out.CLIENT; its time stands in
# ATTEMPT/app.CLIENT: exit code, start and end (µs of the wall clock), uptimes then (µs, or -).

sy_client() {
    local code start end start_up end_up
    sy_read_uptime start_up
    start=${EPOCHREALTIME//[^0-9]/}
    bash -c "$SY_PARAM_COMMAND" </dev/null
    code=$?
    end=${EPOCHREALTIME//[^0-9]/}
    sy_read_uptime end_up
    printf '%d %s %s %s %s\n' "$code" "$start" "$end" "${start_up:--}" "${end_up:--}" \
        >"$SY_ATTEMPT_DIR/app.$SY_CLIENT" || return
    return "$code"
}
