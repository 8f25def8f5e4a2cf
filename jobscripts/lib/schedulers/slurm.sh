#!/bin/bash
# Jobs of Slurm; implements the words of scheduler.sh. Part of steelyard.sh.
#
# Clients are the tasks of one step, one on each node, or one for each container. A client's end does not
# end the others. The step overlaps with others, binds nothing, and its own messages are in srun.err. A
# client is stopped by scancel of its step: a signal to srun would kill it before it can remove its files.
#
# Commands on other nodes are steps of the same job, and so are Open MPI's daemons: an mpirun's own support
# of Slurm is not used, since it may be built for another release. SY_SLURM_* keep what sy_without_scheduler
# unsets. Variables of SPANK options stay, so that daemons get the job's network condition. Podman's
# processes leave Slurm's cgroup: whether they are counted is `unknown`.
# shellcheck disable=SC2034,SC2153 # SY_* are steelyard.sh's

SY_SCHEDULERS+=(slurm)

sy_slurm_is_inside_job() {
    [[ -n ${SLURM_JOB_ID:-} ]]
}

# All but the options for plugins: srun starts mpirun's daemons, and without --netem the run's other nodes
# would have no network condition.
sy_slurm_variables() {
    local name
    for name in "${!SLURM_@}"; do
        [[ $name == SLURM_SPANK_* ]] || printf '%s\n' "$name"
    done
}

sy_slurm_job_id() {
    [[ -z ${SLURM_JOB_ID:-} ]] || printf '%s\n' "$SLURM_JOB_ID"
}

sy_slurm_memory_kib() {
    ((${SLURM_MEM_PER_NODE:-0} == 0)) || printf '%d\n' "$((SLURM_MEM_PER_NODE * 1024))"
}

# --- the run ---------------------------------------------------------------------------------

sy_slurm_begin() {
    SY_JOB_ID=${SLURM_JOB_ID:?SY_SCHEDULER is slurm, but this is no Slurm job}
    SY_SLURM_JOB=$SLURM_JOB_ID SY_SLURM_NODES=${SLURM_JOB_NODELIST:-} SY_SLURM_CONF=${SLURM_CONF:-}
    export SY_SLURM_JOB SY_SLURM_NODES SY_SLURM_CONF
}

# Print raw job id and restart count.
sy_slurm_attempt_name() {
    printf '%s.%s' "$SLURM_JOB_ID" "${SLURM_RESTART_COUNT:-0}"
}

# Start one step with a task per node and container. --overlap: never wait for other steps of the job.
# --wait=0 and --kill-on-bad-exit=0: a client's end does not end the others. --cpu-bind=none: a client
# may use its whole allocation. --overcommit: there may be more containers than processors.
sy_slurm_launch() { # <script>
    local -r each=${SY_LAUNCHER_CONTAINERS:-1}
    local -a spread=()
    ((each == 1)) || spread=(--distribution=block --overcommit)
    SY_LAUNCH_LOG=srun.err
    SY_ROLE=client srun --nodes="$((SY_CLIENTS / each))" --ntasks="$SY_CLIENTS" \
        --ntasks-per-node="$each" ${spread[@]+"${spread[@]}"} \
        --overlap --export=ALL --input=none --cpu-bind=none --wait=0 --kill-on-bad-exit=0 \
        --job-name="$SY_RUN_ID" "$BASH" "$1" \
        >"$SY_ATTEMPT_DIR/srun.out" 2>"$SY_ATTEMPT_DIR/$SY_LAUNCH_LOG" </dev/null &
    SY_PIDS=($!)
}

# srun prints this whenever the cluster does not bind; it is no error.
sy_slurm_is_noise() { # <line>
    [[ $1 == *'lacks support for cpu binding'* ]]
}

sy_slurm_end_unix_s() {
    [[ ! ${SLURM_JOB_END_TIME:-} =~ ^[0-9]+$ ]] || printf '%s' "$SLURM_JOB_END_TIME"
}

# For Slurm 22.05, which does not set SLURM_JOB_END_TIME.
sy_slurm_is_time_limit_reached() {
    [[ $(timeout 3 scontrol --oneliner show job "$SLURM_JOB_ID" 2>/dev/null) == *' Reason=TimeLimit '* ]]
}

sy_slurm_version() {
    timeout -s KILL 5 scontrol --version 2>/dev/null
}

# --- a client --------------------------------------------------------------------------------

# In a container only SY_STEP is set (launcher_exec_requests.sh).
sy_slurm_set_client() {
    SY_CLIENT=${SY_CLIENT:-${SLURM_PROCID:-0}}
    SY_THIS_NODE=${SLURMD_NODENAME:-$HOSTNAME}
    SY_STEP=${SLURM_STEP_ID:-${SY_STEP:--}}
}

# A signal to srun would kill the step before it can remove its files.
sy_slurm_stop_step() { # <step>
    [[ $1 =~ ^[0-9]+$ ]] && sy_slurm_command scancel --signal=TERM "$SY_SLURM_JOB.$1" 2>/dev/null
}

sy_slurm_nodes() {
    local node
    printf '%s\n' "$SY_THIS_NODE"
    while read -r node; do
        [[ -z $node || $node == "$SY_THIS_NODE" ]] || printf '%s\n' "$node"
    done <<<"$(sy_slurm_command scontrol show hostnames "$SY_SLURM_NODES")"
}

sy_slurm_is_this_node() { # <node>
    [[ $1 == "$SY_THIS_NODE" ]]
}

sy_slurm_node_address() { # <node>
    local address=$1 line
    line=$(sy_slurm_command scontrol --oneliner show node "$1") || {
        sy_log "the address of node $1 is not known: $line"
        return 1
    }
    [[ $line != *' NodeAddr='* ]] || address=${line##* NodeAddr=} address=${address%% *}
    printf '%s\n' "$address"
}

sy_slurm_on_node() { # <node> <command> <argument>...
    sy_slurm_command srun --jobid="$SY_SLURM_JOB" --nodes=1 --ntasks=1 --nodelist="$1" --overlap \
        --export=ALL --input=none --cpu-bind=none --quiet --chdir=/tmp "${@:2}"
}

sy_slurm_starter() {
    printf 'srun'
}

sy_slurm_slots() { :; }

# Debian's mpirun may be built against another Slurm than the site's.
sy_slurm_use_native_mpi() {
    return 1
}

sy_slurm_clients_per_node() {
    printf '1'
}

# They have left Slurm's cgroup; the plugin may have counted them.
sy_slurm_counts_moved_processes() {
    printf 'unknown'
}

# --- Slurm's commands ------------------------------------------------------------------------

sy_slurm_is_command() { # <program>
    [[ $1 == scontrol || $1 == srun || $1 == scancel ]]
}

sy_slurm_command() { # <program> <argument>...
    [[ -z ${SY_OUTSIDE:-} ]] || {
        sy_exec_request "$SY_OUTSIDE" "$@"
        return
    }
    SLURM_JOB_ID=$SY_SLURM_JOB ${SY_SLURM_CONF:+env SLURM_CONF="$SY_SLURM_CONF"} "$@"
}
