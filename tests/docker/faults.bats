#!/usr/bin/env bats
# Nodes lost and back, daemons killed and restarted, requeue and preemption: jobs go on as Slurm lets
# them, nodes return, and records say what they hold.
# shellcheck disable=SC2016 # what is in single quotes is for the shell of a container
# shellcheck disable=SC2030,SC2031 # each test is a shell of its own

load cluster

starts() { alice sh -c "ls $RECORDS/$1/$2.*.json | wc -l"; } # JOB NODE

running_on() { # JOB NODE…: its sampler is at work on each
    local node
    for node in "${@:2}"; do
        until_on "$node" 30 "[[ -S /run/steelyard/$node.$1.sock ]]"
        until_on login 30 "[[ -s \$(ls $RECORDS/$1/$node.*.csv | tail -n 1) ]]"
    done
}

# Slurm lets it wait two minutes. Not at once: a credential that is as old as the last one's
# revocation is refused.
starts_again() { # JOB
    until_on ctl 30 "[[ \$(scontrol show job $1) == *JobState=PENDING* ]] && scontrol update jobid=$1 starttime=now+2"
    until_on ctl 60 "[[ \$(scontrol show job $1) == *JobState=COMPLETED* ]]"
}

lose() { # NODE: as if its power had gone
    docker kill "$STEELYARD_DOCKER-$1" >/dev/null
    on ctl scontrol update "nodename=$1" state=down reason=lost
}

regain() { # NODE
    docker start "$STEELYARD_DOCKER-$1" >/dev/null
    all_idle
}

@test "slurmctld restarted under a job: its totals are in sacct" {
    local job
    job=$(gated -w c1 --tag=k=restart)
    running_on "$job" c1
    leave_slurmctld
    sleep 2
    return_slurmctld
    let_go "$job"
    measured "$job"
    [[ $(state "$job") == COMPLETED ]]
    comment "$job" | jq -e '.tags.k == "restart" and .nodes_measured == 1'
    comment_lasts "$job" 2
}

@test "slurmctld away when the job ends: the record is whole, sacct has its totals or leaves them to publish" {
    local job
    job=$(gated -w c1 --tag=k=away)
    running_on "$job" c1
    leave_slurmctld
    sleep 2
    let_go "$job"
    until_on c1 30 '! pgrep -u alice >/dev/null'
    return_slurmctld
    ended "$job"
    [[ $(state "$job") == COMPLETED ]]
    comment "$job" | jq -e '.tags.k == "away"'
    comment "$job" | jq -e '.elapsed_s == null' || comment_lasts "$job" 2
    record_lasts "$job" c1 2
}

@test "slurmd killed under a job, and back: nothing is lost" {
    local job
    job=$(gated -w c1 --tag=k=slurmd)
    running_on "$job" c1
    on c1 pkill -9 -x slurmd
    sleep 2
    let_go "$job"
    measured "$job"
    [[ $(state "$job") == COMPLETED ]]
    comment "$job" | jq -e '.nodes_measured == 1'
    comment_lasts "$job" 2
    record_lasts "$job" c1 2
}

@test "a node lost: its record is that of the start, the other's is finished; back, it measures again" {
    local job
    job=$(submit -N2 -n2 --no-requeue --tag=k=lost --wrap 'srun sleep 60')
    running_on "$job" c1 c2
    sleep 2 # srun waits by now
    lose c2
    ended "$job"
    [[ $(state "$job") == NODE_FAIL ]]
    record "$job" c1 | jq -e '.tags.k == "lost"'
    alice sh -c "cat $RECORDS/$job/c2.*.json" | jq -e '.complete == false'
    regain c2
    job=$(submit -w c2 --tag=k=back --wrap 'sleep 1')
    measured "$job"
    comment "$job" | jq -e '.tags.k == "back" and .nodes_measured == 1'
    record "$job" c2 | jq -e '(.complete or .incomplete_of == "processes")'
}

@test "requeued: a record of each start, the accounting has the last" {
    local job
    alice rm -f again
    job=$(submit -w c1 --tag=k=requeued --wrap 'test -e again || { touch again; sleep 60; }')
    running_on "$job" c1
    until_on login 30 "[[ -e /home/alice/again ]]"
    alice scontrol requeue "$job"
    starts_again "$job"
    measured "$job"
    [[ $(starts "$job" c1) == 2 ]]
    record "$job" c1 | jq -e '(.complete or .incomplete_of == "processes") and .tags.k == "requeued"'
    comment "$job" | jq -e '.tags.k == "requeued" and .nodes_measured == 1'
    comment_lasts "$job" 0
}

@test "preempted: the one that waits and the one that goes first are measured" {
    local first second
    alice rm -f again
    first=$(submit -w c1 --exclusive --tag=k=first --wrap 'test -e again || { touch again; sleep 60; }')
    running_on "$first" c1
    until_on login 30 "[[ -e /home/alice/again ]]"
    second=$(submit -p high -w c1 --exclusive --tag=k=second --wrap 'sleep 1')
    measured "$second"
    comment "$second" | jq -e '.tags.k == "second"'
    comment_lasts "$second" 1
    starts_again "$first"
    measured "$first"
    [[ $(starts "$first" c1) == 2 ]]
    comment "$first" | jq -e '.tags.k == "first"'
    comment_lasts "$first" 0
}

@test "--no-kill: a node lost, the job goes on and is measured to its end" {
    local job
    job=$(gated -N2 --no-kill --no-requeue --tag=k=nokill)
    running_on "$job" c1 c2
    lose c2
    sleep 12 # longer than a node's samples may stand still before it counts as lost (docs/formats.md)
    let_go "$job"
    measured "$job"
    [[ $(state "$job") == COMPLETED ]]
    comment "$job" | jq -e '.nodes_measured == 1'
    comment_lasts "$job" 12
    # Of the extern step the accounting has the part before only: it ends with the job, or soon after.
    record "$job" c1 | jq -e --argjson most "$(seconds "$job" -X)" \
        '(.complete or .incomplete_of == "processes") and .elapsed_s >= 12 and .elapsed_s < $most + 5'
    alice sh -c "cat $RECORDS/$job/c2.*.json" | jq -e '.complete == false'
    regain c2
}

@test "no node is drained by all this" {
    run -0 on ctl sinfo -h -p main -o %T
    [[ $output == idle ]]
}
