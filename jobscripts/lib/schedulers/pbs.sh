#!/bin/bash
# Jobs of Torque, OpenPBS and PBS Pro; implements the words of scheduler.sh. Commands on other nodes are
# in pbs/tasks.sh. Part of steelyard.sh.
#
# The run's shell is on the job's first node. Clients there are its children, on other nodes tasks. The node
# file says which nodes and slots the job has: a node with two lines has two slots. PBS gives a job no
# restart count, so an attempt is the first unused number after the job id, and no memory limit (pbs_mom may
# have one). The time limit was reached if pbs_mom has written so to the job's stderr.
#
# What differs between the servers, or depends on the site, is read once at begin and kept in SY_PBS_*,
# since nodes may not query the server and sy_without_scheduler unsets the job's variables. A job of Slurm's
# qsub is Slurm's. An mpirun that was built with TM starts its daemons by pbs_mom.
# shellcheck disable=SC2034,SC2153 # SY_* are steelyard.sh's

SY_SCHEDULERS+=(pbs)

# A job of Slurm that was submitted by Slurm's qsub, or from a job of PBS, is Slurm's.
sy_pbs_is_inside_job() {
    [[ -n ${PBS_JOBID:-} && -n ${PBS_ENVIRONMENT:-} && -z ${SLURM_JOB_ID:-} ]]
}

sy_pbs_variables() {
    printf '%s\n' "${!PBS_@}"
}

sy_pbs_job_id() {
    [[ -z ${PBS_JOBID:-} ]] || printf '%s\n' "$PBS_JOBID"
}

# No variable of a job has it, and nodes may not query the server.
sy_pbs_memory_kib() { :; }

# --- the run ---------------------------------------------------------------------------------

# The id is complete: 123.server, 123[4].server. The job's first node runs this.
sy_pbs_begin() {
    SY_JOB_ID=${PBS_JOBID:?SY_SCHEDULER is pbs, but this is no job of PBS}
    unset "${!SY_PBS_@}" # of a job that this one was submitted from
    SY_PBS_NODES=$(sy_pbs_distinct_nodes) || exit 1
    SY_PBS_NODE=${SY_PBS_NODES%% *} SY_PBS_NODE=${SY_PBS_NODE#*:}
    SY_PBS_SLOTS=$(sy_pbs_slot_list)
    SY_PBS_DSH=$(sy_pbs_program pbsdsh)
    SY_PBS_END_UNIX_S=$(sy_pbs_planned_end)
    SY_PBS_ERRORS=$(sy_pbs_errors_file)
    export SY_PBS_NODES SY_PBS_SLOTS SY_PBS_DSH SY_PBS_NODE SY_PBS_END_UNIX_S SY_PBS_ERRORS
    sy_pbs_save_job_variables
}

# Print the first unused number: a job is not given its restart count.
sy_pbs_attempt_name() {
    local n=0 runs=$SY_STUDY_DIR/runs/$SY_RUN_ID
    until mkdir -- "$runs/$PBS_JOBID.$n" 2>/dev/null || [[ ! -d $runs/$PBS_JOBID.$n ]]; do
        n=$((n + 1))
    done
    printf '%s.%d' "$PBS_JOBID" "$n"
}

# Start one client on each node, or as many as there are containers; the first node is this one.
sy_pbs_launch() { # <script>
    local -r each=${SY_LAUNCHER_CONTAINERS:-1}
    local -a nodes=()
    local i node
    read -r -a nodes <<<"$SY_PBS_NODES"
    SY_LAUNCH_LOG=tasks.err
    : >"$SY_ATTEMPT_DIR/$SY_LAUNCH_LOG"
    if ((${#nodes[@]} * each < SY_CLIENTS)); then
        printf 'steelyard: %d nodes are needed, and job %s has %d: %s\n' "$((SY_CLIENTS / each))" \
            "$SY_JOB_ID" "${#nodes[@]}" "${nodes[*]#*:}" >"$SY_ATTEMPT_DIR/$SY_LAUNCH_LOG"
        return 0
    fi
    for ((i = 0; i < SY_CLIENTS; i++)); do
        node=${nodes[i / each]#*:}
        if [[ $node == "$SY_PBS_NODE" ]]; then
            SY_ROLE=client SY_CLIENT=$i "$BASH" "$1" </dev/null &
        else
            SY_ROLE=client SY_CLIENT=$i sy_pbs_run_task "$node" "$BASH" "$1" \
                >/dev/null 2>>"$SY_ATTEMPT_DIR/$SY_LAUNCH_LOG" </dev/null &
        fi
        SY_PIDS+=($!)
    done
}

# OpenPBS and PBS Professional print `pbs_version = 23.06.06`, Torque `Version: 6.1.3`.
sy_pbs_version() {
    local line
    line=$(timeout -s KILL 5 "$(sy_pbs_program qstat)" --version 2>&1)
    line=${line%%$'\n'*}
    case $line in
    'pbs_version = '*) printf 'PBS %s' "${line##* }" ;;
    'Version: '*) printf 'Torque %s' "${line##* }" ;;
    esac
}

# pbsdsh prints this for every task that did not exit with 0; the task's own message is more specific.
sy_pbs_is_noise() { # <line>
    [[ $1 == *pbsdsh*': task '*' exit status '* || $1 == *pbsdsh*': killing task '* ]]
}

sy_pbs_end_unix_s() {
    printf '%s' "${SY_PBS_END_UNIX_S:-}"
}

# pbs_mom writes a line to the job's stderr before its SIGTERM.
sy_pbs_is_time_limit_reached() {
    [[ -n ${SY_PBS_ERRORS:-} ]] &&
        tail -c 4096 -- "$SY_PBS_ERRORS" 2>/dev/null | grep -q '^=>> PBS: job killed: walltime '
}

# --- a client --------------------------------------------------------------------------------

# A task of TM has different variables, for its own node's mom.
sy_pbs_set_client() {
    SY_CLIENT=${SY_CLIENT:-0} SY_THIS_NODE=${SY_PBS_NODE:-$HOSTNAME} SY_STEP=${SY_PBS_TASK:--}
    sy_pbs_save_job_variables
}

# A task's step is NODE/PID.
sy_pbs_stop_step() { # <step>
    [[ $1 =~ ^([^/]+)/([0-9]+)$ ]] &&
        sy_pbs_command sy_pbs_signal_task TERM "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
}

sy_pbs_nodes() {
    local entry
    printf '%s\n' "$SY_THIS_NODE"
    for entry in $SY_PBS_NODES; do
        [[ ${entry#*:} == "$SY_THIS_NODE" ]] || printf '%s\n' "${entry#*:}"
    done
}

sy_pbs_is_this_node() { # <node>
    [[ $1 == "$SY_THIS_NODE" ]]
}

sy_pbs_node_address() { # <node>
    printf '%s\n' "$1"
}

sy_pbs_on_node() { # <node> <command> <argument>...
    sy_pbs_command sy_pbs_run_on_node "$@"
}

sy_pbs_starter() {
    if [[ -n $SY_PBS_DSH ]]; then
        printf 'pbsdsh'
    else
        printf 'ssh'
    fi
}

sy_pbs_slots() { # <node>
    local entry
    for entry in $SY_PBS_SLOTS; do
        [[ ${entry#*:} != "$1" ]] || printf '%s' "${entry%%:*}"
    done
}

# An mpirun that was built with TM gets nodes and daemons from pbs_mom; for that it needs the job's
# variables.
sy_pbs_use_native_mpi() { # <mpirun>; sets `start` and `options` of the caller
    [[ ${STEELYARD_MPI_TM:-yes} != no && ${SY_PBS_V_PBS_NODEFILE:-} ]] &&
        sy_pbs_has_tm "$1" || return 1
    sy_pbs_add_job_variables
    options=(--mca plm tm --mca ras tm)
    sy_tag mpi.start tm
}

sy_pbs_clients_per_node() {
    printf '1'
}

# The plugin may have counted them.
sy_pbs_counts_moved_processes() {
    printf 'unknown'
}

# --- commands for containers: functions, since a task needs several commands -----------------

sy_pbs_is_command() { # <program>
    [[ $1 == sy_pbs_run_on_node || $1 == sy_pbs_signal_task ]]
}

sy_pbs_command() { # <function> <argument>...
    if [[ -n ${SY_OUTSIDE:-} ]]; then
        sy_exec_request "$SY_OUTSIDE" "$@"
    else
        "$@"
    fi
}
