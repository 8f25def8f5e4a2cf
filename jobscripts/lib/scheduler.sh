#!/bin/bash
# What differs between schedulers is asked of schedulers/NAME.sh. Part of steelyard.sh.
#
# `sy_scheduler WORD …` calls sy_NAME_WORD, where NAME is SY_SCHEDULER. The file of a scheduler adds
# its name to SY_SCHEDULERS and defines all of these words; nothing else has to be changed. What it
# keeps for itself begins with sy_NAME_ and SY_NAME_ too: so it is found by who takes it along
# (sy_mpi_agent).
#
# Asked of every scheduler, whichever the run's is:
#   is_ours             whether this is a job of its
#   variables           names of the variables that it gives to jobs, one a line
#   job_id              id of the job around us; nothing: none
#   memory_kib          what the job around us may use of this node, in KiB; nothing: no limit known
# Asked by the shell that runs the run (sy_run):
#   begin               set SY_JOB_ID, empty: none, and remember what sy_without_scheduler takes away;
#                       the end, with a word why, outside of a job
#   attempt_name        print a name for the attempt's folder, the same never again
#   launch SCRIPT       start SY_CLIENTS times `SY_ROLE=client bash SCRIPT` in the background, and set
#                       SY_PIDS; SY_LAUNCH_LOG: a file in the attempt folder with words of its own
#   is_noise LINE       whether such a line tells nothing
#   end_unix_s          when the job has to end; nothing: not known
#   says_time_limit     whether it ends the job because its time is over
#   version             its release in its own words; nothing: none, or not known
# Asked by a client:
#   where               set SY_CLIENT, if it is not, SY_THIS_NODE, and SY_STEP: a word by which others
#                       can stop what runs here, `-`: none
#   stop_step STEP      ask it to stop; false: it could not be asked
#   nodes               the job's nodes, one a line, SY_THIS_NODE first
#   is_this_node NODE   whether nothing need be started elsewhere to be on this node
#   node_address NODE   an address that the other nodes reach, or a name that has one
#   on_node NODE COMMAND ARGUMENT…  run a command on another node, without input
#   starter             by what on_node starts commands: the program's name
#   slots NODE          how many ranks of MPI it was given for; nothing: the job was not told
#   mpi_native MPIRUN   whether that mpirun (Open MPI's) starts its daemons by the scheduler's own means;
#                       then add to `start`, the words before it, and `options`, and tag mpi.start
#   clients_per_node    how many of the clients share a node, where no containers part it (SY_SHARERS)
#   measures_leavers      `yes` or `unknown`: whether the record holds who left the job's cgroup
# Asked by the exec helper outside of containers (launcher_exec.sh), of a scheduler with several nodes:
#   is_command PROGRAM  whether it may be executed for a container
#   command PROGRAM ARGUMENT…  run it as the job would, also after sy_without_scheduler

# shellcheck disable=SC2153 # SY_SCHEDULERS and SY_SCHEDULER are two things

sy_scheduler() { # <word> <argument>...
    "sy_${SY_SCHEDULER}_$1" "${@:2}"
}

sy_every_scheduler() { # <word> <argument>...
    local name
    for name in "${SY_SCHEDULERS[@]}"; do
        "sy_${name}_$1" "${@:2}"
    done
}

# Unless whoever starts run.sh says which: the one that this is a job of, or local.
sy_choose_scheduler() {
    local name
    for name in "${SY_SCHEDULERS[@]}"; do
        [[ -n ${SY_SCHEDULER:-} ]] || ! "sy_${name}_is_ours" || SY_SCHEDULER=$name
    done
    SY_SCHEDULER=${SY_SCHEDULER:-local}
    [[ " ${SY_SCHEDULERS[*]} " != *" $SY_SCHEDULER "* ]] || return 0
    sy_say "SY_SCHEDULER=$SY_SCHEDULER: expected one of ${SY_SCHEDULERS[*]}"
    return 1
}
