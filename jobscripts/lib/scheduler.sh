#!/bin/bash
# The interface to a scheduler: schedulers/NAME.sh implements it. Part of steelyard.sh.
#
# `sy_scheduler WORD …` calls sy_NAME_WORD, where NAME is SY_SCHEDULER. The file of a scheduler adds
# its name to SY_SCHEDULERS and defines all of these words; nothing else has to be changed: every file of
# this folder becomes a part of a study's lib/steelyard.sh. Its private functions begin with sy_NAME_ and
# its private variables with SY_NAME_ in capitals (SY_SLURM_), so that sy_mpi_make_agent can copy them.
#
# Called for every scheduler, whichever the run has:
#   is_inside_job       whether this process is in a job of this scheduler
#   variables           print the names of the variables that it gives to jobs, one a line
#   job_id              print the id of the surrounding job; nothing: no job
#   memory_kib          print the job's memory limit on this node, in KiB; nothing: no limit known
# Called by the shell that runs the run (sy_run):
#   begin               set SY_JOB_ID (empty: none), and save what sy_without_scheduler unsets; outside
#                       of a job exit with a message
#   attempt_name        print a unique name for the attempt's folder
#   launch SCRIPT       start SY_CLIENTS times `SY_ROLE=client bash SCRIPT` in the background, and set
#                       SY_PIDS; SY_LAUNCH_LOG: a file in the attempt folder with its own messages
#   is_noise LINE       whether a line of that file carries no information
#   end_unix_s          print when the job has to end; nothing: not known
#   is_time_limit_reached  whether it ends the job because of its time limit
#   version             print its release in its own words; nothing: none, or not known
# Called by a client:
#   set_client          set SY_CLIENT, unless it is set, SY_THIS_NODE, and SY_STEP: an id by which
#                       stop_step stops this client, `-`: none
#   stop_step STEP      send a request to stop; false: the request could not be sent
#   nodes               print the job's nodes, one a line, SY_THIS_NODE first
#   is_this_node NODE   whether a command for that node can be started directly
#   node_address NODE   print an address that the other nodes reach, or a name that has one
#   on_node NODE COMMAND ARGUMENT…  run a command on another node, without input
#   starter             print the program with which on_node starts commands
#   slots NODE          print how many MPI ranks the job has there; nothing: not known
#   use_native_mpi MPIRUN  false: that mpirun (Open MPI's) cannot start its daemons by the scheduler;
#                       else add to `start`, the words before it, and `options`, and tag mpi.start
#   clients_per_node    print how many clients share a node without containers (SY_SHARERS)
#   counts_moved_processes  print `yes` or `unknown`: whether the record counts processes that left the
#                       job's cgroup
# Called by the exec helper outside of containers (launcher_exec_requests.sh), for a scheduler with several
# nodes:
#   is_command PROGRAM  whether a container may request this program
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

# Keeps a given SY_SCHEDULER; else sets the scheduler of the surrounding job, or local.
sy_choose_scheduler() {
    local name
    for name in "${SY_SCHEDULERS[@]}"; do
        [[ -n ${SY_SCHEDULER:-} ]] || ! "sy_${name}_is_inside_job" || SY_SCHEDULER=$name
    done
    SY_SCHEDULER=${SY_SCHEDULER:-local}
    [[ " ${SY_SCHEDULERS[*]} " != *" $SY_SCHEDULER "* ]] || return 0
    sy_log "SY_SCHEDULER=$SY_SCHEDULER: expected one of ${SY_SCHEDULERS[*]}"
    return 1
}
