#!/usr/bin/env bats
# slurmdbd away in three ways, and somebody else's AdminComment: jobs go on, records are whole, and what
# sacct lacks meanwhile it gets from slurmctld when slurmdbd is back.
# shellcheck disable=SC2016 # single-quoted text is for the shell of a container
# shellcheck disable=SC2030,SC2031 # each test is a shell of its own

load cluster

record_of() { # JOB: on c1, without asking the accounting
    wait_on c1 60 "grep -qE '\"complete\": true|\"incomplete_of\": \"processes\"' $RECORDS/$1/c1.*.json 2>/dev/null"
    alice sh -c "cat $RECORDS/$1/c1.*.json"
}

wait_for_accounting() { wait_on login 60 'sacctmgr -n show cluster 2>/dev/null | grep -q steelyard'; }

@test "slurmdbd down for a while: jobs run, totals are in sacct when it is back" {
    local job
    run_on db sh -c 'touch /run/hold && pkill -TERM -x slurmdbd'
    wait_on db 30 '! pgrep -x slurmdbd >/dev/null'
    job=$(submit -w c1 --tag=k=down --wrap 'sleep 1')
    wait_for_state "$job" COMPLETED
    record_of "$job" | jq -e '(.complete or .incomplete_of == "processes") and .tags.k == "down"'
    run -0 alice srun -w c1 --tag=k=down hostname
    [[ $output == c1 ]]
    run_on db rm /run/hold
    wait_for_accounting
    wait_for_totals "$job"
    [[ $(read_state "$job") == COMPLETED ]]
    read_comment "$job" | jq -e '.tags.k == "down" and .nodes_measured == 1'
    check_comment_time "$job" 1
    check_record_time "$job" c1 1
}

# Seconds that a job took which sleeps for one, without anything amiss.
measure_usual_duration() {
    local job
    job=$(submit -w c1 --wrap 'sleep 1')
    wait_for_end "$job"
    elapsed_seconds "$job" -X
}

# A job once took 12 s more: it waited for slurmdbd. Some of these are those of a busy machine.
check_duration() { # JOB SECONDS_USUAL
    local -i took
    took=$(elapsed_seconds "$1" -X)
    echo "job $1 took $took s, one like it $2 s"
    ((took >= 1 && took <= $2 + 5))
}

@test "slurmdbd's host is gone: jobs run, their records are whole, sacct has them later" {
    local job usual
    usual=$(measure_usual_duration)
    docker stop "$STEELYARD_DOCKER-db" >/dev/null
    wait_on c1 30 '! getent hosts db >/dev/null'
    job=$(submit -w c1 --tag=k=nameless --wrap 'sleep 1')
    wait_for_state "$job" COMPLETED
    record_of "$job" | jq -e '(.complete or .incomplete_of == "processes") and .tags.k == "nameless"'
    docker start "$STEELYARD_DOCKER-db" >/dev/null
    wait_for_accounting
    wait_for_end "$job"
    [[ $(read_state "$job") == COMPLETED ]]
    check_duration "$job" "$usual"
    check_record_time "$job" c1 1
}

set_database_host() { # NAME: where slurmctld looks for slurmdbd
    stop_slurmctld
    run_on ctl sed -i "s/^AccountingStorageHost=.*/AccountingStorageHost=$1/" /etc/slurm/slurm.conf
    start_slurmctld
}

@test "slurmdbd's name does not resolve: jobs run, their records are whole, sacct has them later" {
    local job usual
    usual=$(measure_usual_duration)
    # As it starts the name must resolve: else slurmctld of 26.05 ends itself.
    run_on ctl sh -c 'cp /etc/hosts /tmp/hosts; echo "$(getent hosts db | cut -d" " -f1) name.invalid" >>/etc/hosts
        cp /etc/hosts /tmp/with'
    set_database_host name.invalid
    run_on ctl sh -c 'cat /tmp/hosts >/etc/hosts; wc -l </var/log/slurm/slurmctld.log >/tmp/mark'
    run_on db pkill -TERM -x slurmdbd # and with it the connection; it is started again at once
    wait_until_idle
    job=$(submit -w c1 --tag=k=invalid --wrap 'sleep 1')
    wait_for_state "$job" COMPLETED
    record_of "$job" | jq -e '(.complete or .incomplete_of == "processes") and .tags.k == "invalid"'
    wait_on ctl 60 'tail -n +$(($(cat /tmp/mark) + 1)) /var/log/slurm/slurmctld.log | grep -q "getaddrinfo.*failed"'
    # Not by another restart: a slurmctld that ends without slurmdbd may lose what it has for it.
    run_on ctl sh -c 'cat /tmp/with >/etc/hosts'
    wait_for_end "$job"
    [[ $(read_state "$job") == COMPLETED ]]
    check_duration "$job" "$usual"
    check_record_time "$job" c1 1
    set_database_host db
    run_on ctl sh -c 'cat /tmp/hosts >/etc/hosts'
}

# A job that somebody else gives a comment while it runs; prints its id.
run_job_with_comment() { # TEXT
    local job
    job=$(submit_gated -w c1)
    wait_for_state "$job" RUNNING
    run_on ctl scontrol update "jobid=$job" "admincomment=$1"
    release_job "$job"
    wait_for_end "$job"
    echo "$job"
}

@test "an AdminComment of others that is an object keeps what it has, ours beside it" {
    local job
    job=$(run_job_with_comment '{"site": {"cost":0.10}}')
    wait_for_totals "$job"
    [[ $(alice sacct -X -n -P -j "$job" -o AdminComment) == '{"site": {"cost":0.10},"steelyard":{'* ]]
}

@test "an AdminComment of others that is text stays as it is" {
    local job
    job=$(run_job_with_comment 'JS1:H4sI')
    wait_on c1 30 "grep -q 'AdminComment of job $job: left as it is' /var/log/slurm/slurmd.log"
    [[ $(alice sacct -X -n -P -j "$job" -o AdminComment) == JS1:H4sI ]]
    read_record "$job" c1 | jq -e '(.complete or .incomplete_of == "processes")'
}

@test "admin_comment=no leaves the comment of others as it is" {
    local job
    add_plugin_option admin_comment=no
    job=$(submit_gated -w c1 --tag=k=none)
    wait_for_state "$job" RUNNING
    run_on ctl scontrol update "jobid=$job" 'admincomment=JS1:H4sI'
    release_job "$job"
    wait_for_end "$job"
    restore_plugin_options
    wait_on login 30 "[[ \$(sacct -X -n -P -j $job -o AdminComment) == JS1:H4sI ]]"
    read_record "$job" c1 | jq -e '(.complete or .incomplete_of == "processes") and .tags.k == "none"'
}
