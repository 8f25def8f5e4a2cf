#!/bin/bash
# Warm-ups of a client: unmeasured executions of sy_client before the measured one. Part of steelyard.sh;
# called by client_main.sh.

# Execute the warm-ups, before the client reports `ready`, so that the clients still start together. The
# output is in ATTEMPT/warm-up.N; a warm-up that fails fails the run.
sy_warm_up() {
    local n code folder
    for ((n = 1; n <= ${SY_WARM_UP:-0}; n++)); do
        folder=$SY_ATTEMPT_DIR/warm-up.$n
        mkdir -p -- "$folder" || return 1
        if sy_has_launcher; then
            sy_launcher_run_client "${folder##*/}"
        else
            SY_ATTEMPT_DIR=$folder sy_warm_up_once
        fi
        code=$?
        sy_empty_scratch
        if ((code != 0)); then
            sy_log "warm-up $n failed (exit code $code): $(tail -n 1 -- "$folder/err.$SY_CLIENT")"
            return "$code"
        fi
    done
}

sy_warm_up_once() {
    (sy_run_client) >"$SY_ATTEMPT_DIR/out.$SY_CLIENT" 2>"$SY_ATTEMPT_DIR/err.$SY_CLIENT"
}

# Remove a warm-up's files: the measured execution must not find them.
sy_empty_scratch() {
    find "$SY_SCRATCH" -mindepth 1 -xdev -delete
}
