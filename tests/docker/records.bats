#!/usr/bin/env bats
# The folder of records full, another's, or not there: jobs end as they would, nodes stay, the log or
# the record says what is missing.
# shellcheck disable=SC2016 # what is in single quotes is for the shell of a container
# shellcheck disable=SC2030,SC2031 # each test is a shell of its own

load cluster

readonly SMALL=/small/records PLUGSTACK=/etc/slurm/plugstack.conf

# c1 has a folder of its own, on a file system that soon is full.
setup() {
    all_idle
    on c1 sh -c "cp $PLUGSTACK /tmp/plugstack && sed -i 's|record_dir=[^ ]*|record_dir=$SMALL|' $PLUGSTACK &&
        mkdir -p $SMALL && wc -l </var/log/slurm/slurmd.log >/tmp/mark"
}

teardown() {
    on c1 sh -c "rm -rf $SMALL /small/ballast /shared; cp /tmp/plugstack $PLUGSTACK"
    complaints
}

logged() { # SENTENCE: slurmd's log says so since the test's begin
    on c1 sh -c 'tail -n +$(($(cat /tmp/mark) + 1)) /var/log/slurm/slurmd.log' | grep -qF "$1"
}

completes() { # JOB
    ended "$1"
    [[ $(state "$1") == COMPLETED ]]
    all_idle
}

fill() { on c1 sh -c 'cat /dev/zero >/small/ballast 2>/dev/null || :'; }

@test "full when the job begins: no record, one line in the log that names the reason" {
    local job
    fill
    job=$(submit -w c1 --tag=k=full --wrap 'sleep 1')
    completes "$job"
    run ! on c1 sh -c "ls $SMALL/$job/*.json"
    # What a sampler has to complain of is told at the job's end or by the next one on the node.
    completes "$(submit -w c1 --wrap true)"
    logged "job $job: "
    logged "No space left on device"
}

@test "full while the job runs: its record is kept, and says what is lost" {
    local job
    job=$(gated -w c1 --sample-rate=100 --tag=k=filled)
    until_on c1 30 "[[ -s \$(echo $SMALL/$job/c1.*.csv) ]]"
    fill
    sleep 2
    let_go "$job"
    completes "$job"
    until_on c1 30 "grep -q samples_lost $SMALL/$job/c1.*.json"
    on c1 sh -c "cat $SMALL/$job/c1.*.json" |
        jq -e --argjson most "$(seconds "$job.extern")" '.sampler.samples_lost > 0 and
            .complete == false and .elapsed_s >= 2 and .elapsed_s < $most + 1'
}

@test "not mounted: the empty mount point stays empty, the log says what to do; mounted, there are records" {
    local job
    on c1 mkdir /shared
    on c1 sed -i 's|record_dir=[^ ]*|record_dir=/shared/records|' "$PLUGSTACK"
    job=$(submit -w c1 --tag=k=unmounted --wrap 'sleep 1')
    completes "$job"
    completes "$(submit -w c1 --wrap true)"
    logged "job $job: the record folder /shared/records is not there: mount its file system"
    run -0 on c1 ls -A /shared
    [[ -z $output ]]
    on c1 mkdir /shared/records
    job=$(submit -w c1 --tag=k=mounted --wrap 'sleep 1')
    completes "$job"
    until_on c1 30 "grep -qE '\"complete\": true|\"incomplete_of\": \"processes\"' /shared/records/$job/c1.*.json"
}

@test "writable by others: no record, and the log says what to do" {
    local job
    on c1 chmod 777 "$SMALL"
    job=$(submit -w c1 --wrap 'sleep 1')
    completes "$job"
    run ! on c1 test -e "$SMALL/$job"
    completes "$(submit -w c1 --wrap true)"
    logged "$SMALL may be written by others (mode 0777): say chmod go-w"
}

@test "another user's: no record, and the log says whose" {
    local job
    on c1 chown bob "$SMALL"
    job=$(submit -w c1 --wrap 'sleep 1')
    completes "$job"
    run ! on c1 test -e "$SMALL/$job"
    completes "$(submit -w c1 --wrap true)"
    logged "$SMALL belongs to uid 1002"
}
