#!/bin/bash
# One client of a run, and what benchmarks may call. Part of steelyard.sh.
# shellcheck disable=SC2153 # SY_CLIENTS and SY_CLIENT are two things

sy_client_main() {
    local code
    SY_CLIENT=${SY_CLIENT:-${SLURM_PROCID:-0}}
    SY_STATE_FILE=$SY_ATTEMPT_DIR/client.$SY_CLIENT
    export SY_CLIENT
    exec >"$SY_ATTEMPT_DIR/out.$SY_CLIENT" 2>"$SY_ATTEMPT_DIR/err.$SY_CLIENT" || exit 1
    trap 'SY_SIGNAL=TERM' TERM
    trap 'SY_SIGNAL=INT' INT
    trap 'sy_remove_scratch' EXIT
    sy_make_scratch || exit 1
    printf 'ready %s %s\n' "${SLURMD_NODENAME:-$HOSTNAME}" "${SLURM_STEP_ID:--}" >>"$SY_STATE_FILE" || exit 1
    sy_wait_for_go || exit 1
    sy_timed_client
    code=$?
    exit "$code"
}

sy_make_scratch() {
    local base=${SY_SCRATCH_BASE:-${TMPDIR:-/tmp}}
    SY_SCRATCH=$(mktemp -d -- "$base/steelyard.$SY_RUN_ID.$SY_CLIENT.XXXXXXXX") || {
        sy_say "cannot make a scratch folder in $base"
        return 1
    }
    export SY_SCRATCH
    cd -- "$SY_SCRATCH" || return 1
}

# Only ever the folder that sy_make_scratch made.
sy_remove_scratch() {
    [[ ${SY_SCRATCH:-} == */steelyard."$SY_RUN_ID"."$SY_CLIENT".* ]] || return 0
    trap '' TERM INT
    cd / && rm -rf --one-file-system -- "$SY_SCRATCH"
}

sy_wait_for_go() {
    local word='' deadline
    # Longer than main waits: main decides.
    deadline=$((${EPOCHREALTIME//[^0-9]/} + (${SY_BARRIER_S:-120} + 60) * 1000000))
    while [[ -z $SY_SIGNAL ]]; do
        read -r word <"$SY_ATTEMPT_DIR/go" || :
        [[ $word == go ]] && return 0
        if [[ $word == stop ]] || ((${EPOCHREALTIME//[^0-9]/} > deadline)); then
            sy_say 'not started: the other clients did not get ready'
            return 1
        fi
        sy_pause 0.01
    done
    return 1
}

# The benchmark in a child, so that a signal is handled at once and its end still written.
sy_timed_client() {
    local code start end start_up end_up
    start_up=$(sy_uptime_us)
    start=${EPOCHREALTIME//[^0-9]/}
    (
        # Only once the program in the foreground has stopped and tidied up.
        trap 'exit 143' TERM
        trap 'exit 130' INT
        trap - EXIT
        sy_client
    ) &
    local pid=$!
    wait "$pid"
    code=$?
    while [[ -n $SY_SIGNAL ]] && kill -0 "$pid" 2>/dev/null; do
        sy_signal_below "$SY_SIGNAL" "$pid"
        SY_SIGNAL=
        wait "$pid"
        code=$?
    done
    end=${EPOCHREALTIME//[^0-9]/}
    trap '' TERM INT # what follows is short, and must be done
    end_up=$(sy_uptime_us)
    printf 'end %d %s %s %s %s\n' "$code" "$start" "$end" "${start_up:--}" "${end_up:--}" \
        >>"$SY_STATE_FILE"
    return "$code"
}

# For benchmarks that bring their own launcher (mpirun): it must not see the scheduler's job.
sy_without_scheduler() {
    local name
    for name in "${!SLURM_@}" "${!PMI_@}" "${!PMIX_@}" "${!PMI2_@}" "${!OMPI_@}" "${!PRTE_@}" \
        "${!PBS_@}"; do
        unset "$name"
    done
}

# Run a program on so many MPI ranks. One rank needs no launcher. More: all on this node, over
# shared memory, bound to nothing, since the clients of a run do not know of each other.
sy_mpi_run() { # <ranks> <mpirun> <program> <argument>...
    local ranks=$1 mpirun=$2 sharers=1 launcher
    local -a options=(-np "$ranks")
    shift 2
    if ((ranks == 1)); then
        "$@" </dev/null
        return
    fi
    launcher=$(type -P -- "$mpirun") || {
        sy_say "$mpirun is missing on $HOSTNAME: install the Debian package openmpi-bin"
        return 3
    }
    if [[ $("$launcher" --version 2>/dev/null) == *'Open MPI'* ]]; then
        options+=(--host "localhost:$ranks" --oversubscribe --bind-to none
            --mca pml ob1 --mca btl '^tcp,openib')
        ((EUID != 0)) || options+=(--allow-run-as-root)
        # Waiting ranks spin: with more ranks than processors they would keep the others from work.
        [[ $SY_SCHEDULER != local ]] || sharers=$SY_CLIENTS
        ((ranks * sharers <= $(nproc))) || options+=(--mca mpi_yield_when_idle 1)
    fi
    "$launcher" "${options[@]}" "$@" </dev/null
}

# The first of: the named program's own variable, PATH. Prints its path or says what is missing.
sy_program() { # <program> <path from a variable, may be empty> <what to do>
    local path=$2
    if [[ -n $path ]]; then
        [[ -f $path && -x $path ]] && printf '%s' "$path" && return 0
        sy_say "$path: no program that can be run"
        return 3
    fi
    path=$(type -P -- "$1") && printf '%s' "$path" && return 0
    sy_say "$1 is missing on $HOSTNAME: $3"
    return 3
}
