#!/usr/bin/env bats
# slurmdbd away in two ways, and somebody else's AdminComment: jobs go on, records are whole, and what
# sacct lacks meanwhile it gets from slurmctld when slurmdbd is back.
# shellcheck disable=SC2016 # what is in single quotes is for the shell of a container
# shellcheck disable=SC2030,SC2031 # each test is a shell of its own

load cluster

record_of() { # JOB: on c1, without asking the accounting
    until_on c1 60 "grep -q '\"complete\": true' $RECORDS/$1/c1.*.json 2>/dev/null"
    alice sh -c "cat $RECORDS/$1/c1.*.json"
}

back() { until_on login 60 'sacctmgr -n show cluster 2>/dev/null | grep -q steelyard'; }

@test "slurmdbd down for a while: jobs run, totals are in sacct when it is back" {
    local job
    on db sh -c 'touch /run/hold && pkill -TERM -x slurmdbd'
    until_on db 30 '! pgrep -x slurmdbd >/dev/null'
    job=$(submit -w c1 --tag=k=down --wrap 'sleep 1')
    in_state "$job" COMPLETED
    record_of "$job" | jq -e '.complete and .tags.k == "down" and .elapsed_s >= 1'
    run -0 alice srun -w c1 --tag=k=down hostname
    [[ $output == c1 ]]
    on db rm /run/hold
    back
    weighed "$job"
    [[ $(state "$job") == COMPLETED ]]
    comment "$job" | jq -e '.tags.k == "down" and .nodes_weighed == 1 and .elapsed_s >= 1'
}

@test "slurmdbd's name does not resolve: jobs run, their records are whole, sacct has them later" {
    local job
    docker stop "$STEELYARD_DOCKER-db" >/dev/null
    until_on c1 30 '! getent hosts db >/dev/null'
    job=$(submit -w c1 --tag=k=nameless --wrap 'sleep 1')
    in_state "$job" COMPLETED
    record_of "$job" | jq -e '.complete and .tags.k == "nameless" and .elapsed_s >= 1'
    docker start "$STEELYARD_DOCKER-db" >/dev/null
    back
    ended "$job"
    [[ $(state "$job") == COMPLETED ]]
    (($(alice sacct -X -n -P -j "$job" -o ElapsedRaw) < 9)) # it was 14 s once: it waited for slurmdbd
}

# A job that somebody else gives a comment while it runs; prints its id.
commented() { # TEXT
    local job
    job=$(submit -w c1 --wrap 'rm -f go; touch runs; until [ -e go ]; do sleep 0.1; done')
    until_on login 30 '[[ -e /home/alice/runs ]]'
    on ctl scontrol update "jobid=$job" "admincomment=$1"
    alice sh -c 'rm runs; touch go'
    ended "$job"
    echo "$job"
}

@test "an AdminComment of others that is an object keeps what it has, ours beside it" {
    local job
    job=$(commented '{"site": {"cost":0.10}}')
    weighed "$job"
    [[ $(alice sacct -X -n -P -j "$job" -o AdminComment) == '{"site": {"cost":0.10},"steelyard":{'* ]]
}

@test "an AdminComment of others that is text stays as it is" {
    local job
    job=$(commented 'JS1:H4sI')
    until_on c1 30 "grep -q 'AdminComment of job $job: left as it is' /var/log/slurm/slurmd.log"
    [[ $(alice sacct -X -n -P -j "$job" -o AdminComment) == JS1:H4sI ]]
    record "$job" c1 | jq -e '.complete'
}

@test "admin_comment=no leaves the comment of others as it is" {
    local job
    on c1 sed -i.before 's/^optional .*/& admin_comment=no/' /etc/slurm/plugstack.conf
    job=$(submit -w c1 --tag=k=none --wrap 'sleep 1')
    in_state "$job" RUNNING
    on ctl scontrol update "jobid=$job" 'admincomment=JS1:H4sI'
    ended "$job"
    on c1 mv /etc/slurm/plugstack.conf.before /etc/slurm/plugstack.conf
    until_on login 30 "[[ \$(sacct -X -n -P -j $job -o AdminComment) == JS1:H4sI ]]"
    record "$job" c1 | jq -e '.complete and .tags.k == "none"'
}
