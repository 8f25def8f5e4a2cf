#!/usr/bin/env bats
# slurmdbd away in three ways, and somebody else's AdminComment: jobs go on, records are whole, and what
# sacct lacks meanwhile it gets from slurmctld when slurmdbd is back.
# shellcheck disable=SC2016 # what is in single quotes is for the shell of a container
# shellcheck disable=SC2030,SC2031 # each test is a shell of its own

load cluster

record_of() { # JOB: on c1, without asking the accounting
    until_on c1 60 "grep -qE '\"complete\": true|\"incomplete_of\": \"processes\"' $RECORDS/$1/c1.*.json 2>/dev/null"
    alice sh -c "cat $RECORDS/$1/c1.*.json"
}

back() { until_on login 60 'sacctmgr -n show cluster 2>/dev/null | grep -q steelyard'; }

@test "slurmdbd down for a while: jobs run, totals are in sacct when it is back" {
    local job
    on db sh -c 'touch /run/hold && pkill -TERM -x slurmdbd'
    until_on db 30 '! pgrep -x slurmdbd >/dev/null'
    job=$(submit -w c1 --tag=k=down --wrap 'sleep 1')
    in_state "$job" COMPLETED
    record_of "$job" | jq -e '(.complete or .incomplete_of == "processes") and .tags.k == "down"'
    run -0 alice srun -w c1 --tag=k=down hostname
    [[ $output == c1 ]]
    on db rm /run/hold
    back
    measured "$job"
    [[ $(state "$job") == COMPLETED ]]
    comment "$job" | jq -e '.tags.k == "down" and .nodes_measured == 1'
    comment_lasts "$job" 1
    record_lasts "$job" c1 1
}

# Seconds that a job took which sleeps for one, without anything amiss.
usual() {
    local job
    job=$(submit -w c1 --wrap 'sleep 1')
    ended "$job"
    seconds "$job" -X
}

# A job once took 12 s more: it waited for slurmdbd. Some of these are those of a busy machine.
takes_no_longer() { # JOB SECONDS_USUAL
    local -i took
    took=$(seconds "$1" -X)
    echo "job $1 took $took s, one like it $2 s"
    ((took >= 1 && took <= $2 + 5))
}

@test "slurmdbd's host is gone: jobs run, their records are whole, sacct has them later" {
    local job usual
    usual=$(usual)
    docker stop "$STEELYARD_DOCKER-db" >/dev/null
    until_on c1 30 '! getent hosts db >/dev/null'
    job=$(submit -w c1 --tag=k=nameless --wrap 'sleep 1')
    in_state "$job" COMPLETED
    record_of "$job" | jq -e '(.complete or .incomplete_of == "processes") and .tags.k == "nameless"'
    docker start "$STEELYARD_DOCKER-db" >/dev/null
    back
    ended "$job"
    [[ $(state "$job") == COMPLETED ]]
    takes_no_longer "$job" "$usual"
    record_lasts "$job" c1 1
}

named_db() { # NAME: where slurmctld looks for slurmdbd
    leave_slurmctld
    on ctl sed -i "s/^AccountingStorageHost=.*/AccountingStorageHost=$1/" /etc/slurm/slurm.conf
    return_slurmctld
}

@test "slurmdbd's name does not resolve: jobs run, their records are whole, sacct has them later" {
    local job usual
    usual=$(usual)
    # As it starts the name must resolve: else slurmctld of 26.05 ends itself.
    on ctl sh -c 'cp /etc/hosts /tmp/hosts; echo "$(getent hosts db | cut -d" " -f1) name.invalid" >>/etc/hosts
        cp /etc/hosts /tmp/with'
    named_db name.invalid
    on ctl sh -c 'cat /tmp/hosts >/etc/hosts; wc -l </var/log/slurm/slurmctld.log >/tmp/mark'
    on db pkill -TERM -x slurmdbd # and with it the connection; it is started again at once
    all_idle
    job=$(submit -w c1 --tag=k=invalid --wrap 'sleep 1')
    in_state "$job" COMPLETED
    record_of "$job" | jq -e '(.complete or .incomplete_of == "processes") and .tags.k == "invalid"'
    until_on ctl 60 'tail -n +$(($(cat /tmp/mark) + 1)) /var/log/slurm/slurmctld.log | grep -q "getaddrinfo.*failed"'
    # Not by another restart: a slurmctld that ends without slurmdbd may lose what it has for it.
    on ctl sh -c 'cat /tmp/with >/etc/hosts'
    ended "$job"
    [[ $(state "$job") == COMPLETED ]]
    takes_no_longer "$job" "$usual"
    record_lasts "$job" c1 1
    named_db db
    on ctl sh -c 'cat /tmp/hosts >/etc/hosts'
}

# A job that somebody else gives a comment while it runs; prints its id.
commented() { # TEXT
    local job
    job=$(gated -w c1)
    in_state "$job" RUNNING
    on ctl scontrol update "jobid=$job" "admincomment=$1"
    let_go "$job"
    ended "$job"
    echo "$job"
}

@test "an AdminComment of others that is an object keeps what it has, ours beside it" {
    local job
    job=$(commented '{"site": {"cost":0.10}}')
    measured "$job"
    [[ $(alice sacct -X -n -P -j "$job" -o AdminComment) == '{"site": {"cost":0.10},"steelyard":{'* ]]
}

@test "an AdminComment of others that is text stays as it is" {
    local job
    job=$(commented 'JS1:H4sI')
    until_on c1 30 "grep -q 'AdminComment of job $job: left as it is' /var/log/slurm/slurmd.log"
    [[ $(alice sacct -X -n -P -j "$job" -o AdminComment) == JS1:H4sI ]]
    record "$job" c1 | jq -e '(.complete or .incomplete_of == "processes")'
}

@test "admin_comment=no leaves the comment of others as it is" {
    local job
    plugin_told admin_comment=no
    job=$(gated -w c1 --tag=k=none)
    in_state "$job" RUNNING
    on ctl scontrol update "jobid=$job" 'admincomment=JS1:H4sI'
    let_go "$job"
    ended "$job"
    plugin_as_before
    until_on login 30 "[[ \$(sacct -X -n -P -j $job -o AdminComment) == JS1:H4sI ]]"
    record "$job" c1 | jq -e '(.complete or .incomplete_of == "processes") and .tags.k == "none"'
}
