#!/usr/bin/env bats
# The folder of records is full, another user's, or missing: jobs end normally, nodes stay up, and the log
# or the record names the fault.
# shellcheck disable=SC2016 # single-quoted text is for the shell of a container
# shellcheck disable=SC2030,SC2031 # each test is a shell of its own

load cluster

readonly SMALL=/small/records PLUGSTACK=/etc/slurm/plugstack.conf

# c1 has a separate folder, on a small file system.
setup() {
    wait_until_idle
    run_on c1 sh -c "cp $PLUGSTACK /tmp/plugstack && sed -i 's|record_dir=[^ ]*|record_dir=$SMALL|' $PLUGSTACK &&
        mkdir -p $SMALL && wc -l </var/log/slurm/slurmd.log >/tmp/mark"
}

teardown() {
    run_on c1 sh -c "rm -rf $SMALL /small/ballast /shared; cp /tmp/plugstack $PLUGSTACK"
    report_failure
}

is_logged() { # SENTENCE: in slurmd's log since the test's begin
    run_on c1 sh -c 'tail -n +$(($(cat /tmp/mark) + 1)) /var/log/slurm/slurmd.log' | grep -qF "$1"
}

wait_for_completion() { # JOB
    wait_for_end "$1"
    [[ $(read_state "$1") == COMPLETED ]]
    wait_until_idle
}

fill_file_system() { run_on c1 sh -c 'cat /dev/zero >/small/ballast 2>/dev/null || :'; }

@test "full when the job begins: no record, one line in the log that names the reason" {
    local job
    fill_file_system
    job=$(submit -w c1 --tag=k=full --wrap 'sleep 1')
    wait_for_completion "$job"
    run ! run_on c1 sh -c "ls $SMALL/$job/*.json"
    # A sampler's error is logged at the job's end or by the next sampler on the node.
    wait_for_completion "$(submit -w c1 --wrap true)"
    is_logged "job $job: "
    is_logged "No space left on device"
}

@test "full while the job runs: its record is kept, and says what is lost" {
    local job
    job=$(submit_gated -w c1 --sample-rate=100 --tag=k=filled)
    wait_on c1 30 "[[ -s \$(echo $SMALL/$job/c1.*.csv) ]]"
    fill_file_system
    sleep 2
    release_job "$job"
    wait_for_completion "$job"
    wait_on c1 30 "grep -q samples_lost $SMALL/$job/c1.*.json"
    run_on c1 sh -c "cat $SMALL/$job/c1.*.json" |
        jq -e --argjson most "$(elapsed_seconds "$job.extern")" '.sampler.samples_lost > 0 and
            .complete == false and .elapsed_s >= 2 and .elapsed_s < $most + 1'
}

@test "not mounted: the empty mount point stays empty, the log says what to do; mounted, there are records" {
    local job
    run_on c1 mkdir /shared
    run_on c1 sed -i 's|record_dir=[^ ]*|record_dir=/shared/records|' "$PLUGSTACK"
    job=$(submit -w c1 --tag=k=unmounted --wrap 'sleep 1')
    wait_for_completion "$job"
    wait_for_completion "$(submit -w c1 --wrap true)"
    is_logged "job $job: the record folder /shared/records is not there: mount its file system"
    run -0 run_on c1 ls -A /shared
    [[ -z $output ]]
    run_on c1 mkdir /shared/records
    job=$(submit -w c1 --tag=k=mounted --wrap 'sleep 1')
    wait_for_completion "$job"
    wait_on c1 30 "grep -qE '\"complete\": true|\"incomplete_of\": \"processes\"' /shared/records/$job/c1.*.json"
}

@test "writable by others: no record, and the log says what to do" {
    local job
    run_on c1 chmod 777 "$SMALL"
    job=$(submit -w c1 --wrap 'sleep 1')
    wait_for_completion "$job"
    run ! run_on c1 test -e "$SMALL/$job"
    wait_for_completion "$(submit -w c1 --wrap true)"
    is_logged "$SMALL may be written by others (mode 0777): say chmod go-w"
}

@test "another user's: no record, and the log says whose" {
    local job
    run_on c1 chown bob "$SMALL"
    job=$(submit -w c1 --wrap 'sleep 1')
    wait_for_completion "$job"
    run ! run_on c1 test -e "$SMALL/$job"
    wait_for_completion "$(submit -w c1 --wrap true)"
    is_logged "$SMALL belongs to uid 1002"
}
