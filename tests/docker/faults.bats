#!/usr/bin/env bats
# Nodes lost and restored, daemons killed and restarted, requeue and preemption: jobs continue as with
# Slurm alone, nodes return, and records state what is missing.
# shellcheck disable=SC2016 # single-quoted text is for the shell of a container
# shellcheck disable=SC2030,SC2031 # each test is a shell of its own

load cluster

count_starts() { alice sh -c "ls $RECORDS/$1/$2.*.json | wc -l"; } # JOB NODE

wait_for_samplers() { # JOB NODE…: until each node has one with samples
    local node
    for node in "${@:2}"; do
        wait_on "$node" 30 "[[ -S /run/steelyard/$node.$1.sock ]]"
        wait_on login 30 "[[ -s \$(ls $RECORDS/$1/$node.*.csv | tail -n 1) ]]"
    done
}

# Restart a requeued job, which Slurm would delay by two minutes. Not at once: Slurm refuses a credential
# that is as old as the last one's revocation.
restart_job() { # JOB
    wait_on ctl 30 "[[ \$(scontrol show job $1) == *JobState=PENDING* ]] && scontrol update jobid=$1 starttime=now+2"
    wait_on ctl 60 "[[ \$(scontrol show job $1) == *JobState=COMPLETED* ]]"
}

stop_node() { # NODE: as by a power failure
    docker kill "$STEELYARD_DOCKER-$1" >/dev/null
    run_on ctl scontrol update "nodename=$1" state=down reason=lost
}

start_node() { # NODE
    docker start "$STEELYARD_DOCKER-$1" >/dev/null
    wait_until_idle
}

@test "slurmctld restarted under a job: its totals are in sacct" {
    local job
    job=$(submit_gated -w c1 --tag=k=restart)
    wait_for_samplers "$job" c1
    stop_slurmctld
    sleep 2
    start_slurmctld
    release_job "$job"
    wait_for_totals "$job"
    [[ $(read_state "$job") == COMPLETED ]]
    read_comment "$job" | jq -e '.tags.k == "restart" and .nodes_measured == 1'
    check_comment_time "$job" 2
}

@test "slurmctld away when the job ends: the record is whole, sacct has its totals or leaves them to publish" {
    local job
    job=$(submit_gated -w c1 --tag=k=away)
    wait_for_samplers "$job" c1
    stop_slurmctld
    sleep 2
    release_job "$job"
    wait_on c1 30 '! pgrep -u alice >/dev/null'
    start_slurmctld
    wait_for_end "$job"
    [[ $(read_state "$job") == COMPLETED ]]
    read_comment "$job" | jq -e '.tags.k == "away"'
    read_comment "$job" | jq -e '.elapsed_s == null' || check_comment_time "$job" 2
    check_record_time "$job" c1 2
}

@test "slurmd killed under a job, and back: nothing is lost" {
    local job
    job=$(submit_gated -w c1 --tag=k=slurmd)
    wait_for_samplers "$job" c1
    run_on c1 pkill -9 -x slurmd
    sleep 2
    release_job "$job"
    wait_for_totals "$job"
    [[ $(read_state "$job") == COMPLETED ]]
    read_comment "$job" | jq -e '.nodes_measured == 1'
    check_comment_time "$job" 2
    check_record_time "$job" c1 2
}

@test "a node lost: its record is that of the start, the other's is finished; back, it measures again" {
    local job
    job=$(submit -N2 -n2 --no-requeue --tag=k=lost --wrap 'srun sleep 60')
    wait_for_samplers "$job" c1 c2
    sleep 2 # srun waits by now
    stop_node c2
    wait_for_end "$job"
    [[ $(read_state "$job") == NODE_FAIL ]]
    read_record "$job" c1 | jq -e '.tags.k == "lost"'
    alice sh -c "cat $RECORDS/$job/c2.*.json" | jq -e '.complete == false'
    start_node c2
    job=$(submit -w c2 --tag=k=back --wrap 'sleep 1')
    wait_for_totals "$job"
    read_comment "$job" | jq -e '.tags.k == "back" and .nodes_measured == 1'
    read_record "$job" c2 | jq -e '(.complete or .incomplete_of == "processes")'
}

@test "requeued: a record of each start, the accounting has the last" {
    local job
    alice rm -f again
    job=$(submit -w c1 --tag=k=requeued --wrap 'test -e again || { touch again; sleep 60; }')
    wait_for_samplers "$job" c1
    wait_on login 30 "[[ -e /home/alice/again ]]"
    alice scontrol requeue "$job"
    restart_job "$job"
    wait_for_totals "$job"
    [[ $(count_starts "$job" c1) == 2 ]]
    read_record "$job" c1 | jq -e '(.complete or .incomplete_of == "processes") and .tags.k == "requeued"'
    read_comment "$job" | jq -e '.tags.k == "requeued" and .nodes_measured == 1'
    check_comment_time "$job" 0
}

@test "preempted: the one that waits and the one that goes first are measured" {
    local first second
    alice rm -f again
    first=$(submit -w c1 --exclusive --tag=k=first --wrap 'test -e again || { touch again; sleep 60; }')
    wait_for_samplers "$first" c1
    wait_on login 30 "[[ -e /home/alice/again ]]"
    second=$(submit -p high -w c1 --exclusive --tag=k=second --wrap 'sleep 1')
    wait_for_totals "$second"
    read_comment "$second" | jq -e '.tags.k == "second"'
    check_comment_time "$second" 1
    restart_job "$first"
    wait_for_totals "$first"
    [[ $(count_starts "$first" c1) == 2 ]]
    read_comment "$first" | jq -e '.tags.k == "first"'
    check_comment_time "$first" 0
}

@test "--no-kill: a node lost, the job goes on and is measured to its end" {
    local job
    job=$(submit_gated -N2 --no-kill --no-requeue --tag=k=nokill)
    wait_for_samplers "$job" c1 c2
    stop_node c2
    sleep 12 # longer than a node's samples may stand still before it counts as lost (docs/formats.md)
    release_job "$job"
    wait_for_totals "$job"
    [[ $(read_state "$job") == COMPLETED ]]
    read_comment "$job" | jq -e '.nodes_measured == 1'
    check_comment_time "$job" 12
    # The accounting has the extern step only up to the loss: the record may end soon after the job.
    read_record "$job" c1 | jq -e --argjson most "$(elapsed_seconds "$job" -X)" \
        '(.complete or .incomplete_of == "processes") and .elapsed_s >= 12 and .elapsed_s < $most + 5'
    alice sh -c "cat $RECORDS/$job/c2.*.json" | jq -e '.complete == false'
    start_node c2
}

@test "no node is drained by all this" {
    run -0 run_on ctl sinfo -h -p main -o %T
    [[ $output == idle ]]
}
