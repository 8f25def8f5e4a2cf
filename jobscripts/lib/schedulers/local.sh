#!/bin/bash
# No scheduler: everything runs on this host; implements the words of scheduler.sh. Part of steelyard.sh.
#
# It is the default outside of any job. Clients are children of the run's shell, all on this host, and share
# it; no step can be stopped but by signals. Attempts are local.1, local.2, … There is no job id and no time
# limit. Processes that leave a cgroup are counted, since the sampler is around the run.
# shellcheck disable=SC2034,SC2153 # SY_* are steelyard.sh's

SY_SCHEDULERS+=(local)

sy_local_is_inside_job() {
    return 1 # the default outside of any scheduler's job
}

sy_local_variables() { :; }

sy_local_job_id() { :; }

sy_local_memory_kib() { :; }

# --- the run ---------------------------------------------------------------------------------

sy_local_begin() {
    SY_JOB_ID=
}

# Print the first local.N that does not exist.
sy_local_attempt_name() {
    local n=1 runs=$SY_STUDY_DIR/runs/$SY_RUN_ID
    until mkdir -- "$runs/local.$n" 2>/dev/null || [[ ! -d $runs/local.$n ]]; do
        n=$((n + 1))
    done
    printf 'local.%d' "$n"
}

sy_local_launch() { # <script>
    local i
    for ((i = 0; i < SY_CLIENTS; i++)); do
        SY_ROLE=client SY_CLIENT=$i "$BASH" "$1" </dev/null &
        SY_PIDS+=($!)
    done
}

sy_local_is_noise() { # <line>
    return 1
}

sy_local_end_unix_s() { :; }

sy_local_is_time_limit_reached() {
    return 1
}

sy_local_version() { :; }

# --- a client --------------------------------------------------------------------------------

sy_local_set_client() {
    SY_CLIENT=${SY_CLIENT:-0} SY_THIS_NODE=$HOSTNAME SY_STEP=-
}

sy_local_stop_step() { # <step>
    return 1
}

sy_local_nodes() {
    printf '%s\n' "$HOSTNAME"
}

sy_local_is_this_node() { # <node>
    return 0
}

sy_local_node_address() { # <node>
    printf '%s\n' "$1"
}

sy_local_on_node() { # <node> <command> <argument>...
    "${@:2}"
}

sy_local_starter() { :; }

sy_local_slots() { :; }

sy_local_use_native_mpi() {
    return 1
}

sy_local_clients_per_node() {
    printf '%d' "$SY_CLIENTS"
}

# Processes keep the sampler that runs around them.
sy_local_counts_moved_processes() {
    printf 'yes'
}

# --- commands: there are none ----------------------------------------------------------------

sy_local_is_command() { # <program>
    return 1
}

sy_local_command() { # <program> <argument>...
    return 1
}
