#!/usr/bin/env bats
# shellcheck disable=SC2016 # single-quoted text is for the shell of a container
# shellcheck disable=SC2030,SC2031 # each test is a shell of its own
# Launch methods, the options and their errors, as an ordinary user on the login node.

load cluster

setup_file() {
    local role
    for role in c1 c2; do
        run_on "$role" cp /var/log/slurm/slurmd.log /tmp/before
    done
}

@test "sbatch, salloc and srun show the four options" {
    local program option
    for program in sbatch salloc srun; do
        run -0 alice "$program" --help
        for option in --tag=KEY=VALUE --sample-rate=HZ --netem=SPEC --cache=; do
            [[ $output == *"$option"*"[steelyard]"* ]]
        done
    done
}

check_refusal() { # SENTENCE COMMAND OPTION
    local -a work=(true)
    [[ $2 != sbatch ]] || work=(--wrap true)
    run ! alice "$2" -J faulty "$3" "${work[@]}"
    [[ $output == "$2: error: steelyard: "*"$1"* ]]
}

@test "a faulty option is one sentence, and nothing is queued" {
    local by
    for by in sbatch srun salloc; do
        check_refusal "found no '='" "$by" --tag=novalue
        check_refusal "delay=50: expected a time with unit" "$by" --netem=delay=50
    done
    check_refusal "found no VALUE" sbatch --tag=k=
    check_refusal "another character in KEY" sbatch "--tag=a b=c"
    check_refusal "another character in VALUE" sbatch --tag=k=é
    check_refusal "another character in VALUE" sbatch --tag=$'k=a\nb'
    check_refusal "a VALUE of 257 bytes" sbatch "--tag=k=$(printf 'x%.0s' {1..257})"
    check_refusal "0 (totals only), or 0.001 to 100" sbatch --sample-rate=101
    check_refusal "expected cold, warm or cold:cvmfs=MB" sbatch --cache=lukewarm
    check_refusal "dealy=50ms: unknown part; known are delay, loss" sbatch --netem=dealy=50ms
    check_refusal "expected a percentage from 0% to 100%" sbatch --netem=loss=200%
    run -0 alice sacct -X -n --name=faulty
    [[ -z $output ]]
}

@test "two nodes: tags and totals in sacct, records that their user can read and another cannot" {
    local job file
    job=$(submit -N2 -n2 --tag=network=far --tag=run=7 --wrap 'srun sleep 1')
    wait_for_totals "$job"
    read_comment "$job" | jq -e '.tags == {"network": "far", "run": "7"} and .nodes == 2 and
        .nodes_measured == 1 and .partial' # until steelyard publish has run
    check_comment_time "$job" 1
    run -0 alice sh -c "stat -c '%U %a' $RECORDS/$job/*"
    [[ $output == $'alice 440\nalice 440\nalice 440\nalice 440' ]]
    check_record_time "$job" c1 1
    read_record "$job" c2 | jq -e "(.complete or .incomplete_of == \"processes\") and .node == \"c2\" and .job.job_id == \"$job\""
    file=$(alice sh -c "echo $RECORDS/$job/c1.*.json")
    run ! run_as bob cat "$file"
    [[ $output == *"Permission denied"* ]]
}

@test "a job without options is measured, too" {
    local job
    job=$(submit --wrap 'sleep 1')
    wait_for_totals "$job"
    read_comment "$job" | jq -e '.tags == {} and .nodes_measured == 1'
    check_comment_time "$job" 1
}

@test "a value of a tag may hold commas, quotes, blanks and '='" {
    local job
    job=$(submit --tag=$'k=a,b="c" d=e\\' --wrap true)
    wait_for_totals "$job"
    read_comment "$job" | jq -e '.tags.k == "a,b=\"c\" d=e\\"'
}

@test "an array: each task has a comment and a record of its own" {
    local job task ids
    job=$(submit --array=1-3 --tag=k=array --wrap 'sleep 0.5')
    wait_for_end "$job"
    wait_on login 30 "[[ \$(sacct -X -n -P -j $job -o AdminComment | grep -c elapsed_s) == 3 ]]"
    run -0 alice sacct -X -n -P -j "$job" -o JobIDRaw,JobID
    ids=$output
    for task in 1 2 3; do
        read_record "$(sed -n "s/|${job}_$task\$//p" <<<"$ids")" c1 |
            jq -e ".job.array_job_id == \"$job\" and .job.array_task_id == \"$task\" and .tags.k == \"array\""
    done
}

@test "a heterogeneous job: each component is measured under its own id" {
    local -i job part
    job=$(submit -n1 -w c1 --tag=k=het : -n1 -w c2 --wrap 'srun --het-group=0,1 sleep 1')
    for part in 0 1; do
        wait_for_totals $((job + part))
        read_comment $((job + part)) | jq -e '.nodes_measured == 1'
        check_comment_time $((job + part)) 1
        check_record_time $((job + part)) c$((part + 1)) 1
        read_record $((job + part)) c$((part + 1)) | jq -e ".job.job_id == \"$((job + part))\""
        run ! alice sh -c "ls $RECORDS/$((job + part))/c$((2 - part)).*.json" # the other's node
    done
    read_comment "$job" | jq -e '.tags.k == "het"'
    [[ $(alice sacct -X -n -P -j "$job" -o JobID,JobIDRaw) == "$job+0|$job"$'\n'"$job+1|$((job + 1))" ]]
}

@test "srun alone on two nodes: its tags, and the first node's totals" {
    local job
    job=$(alice srun -N2 --tag=k=alone bash -c 'sleep 1.5; ((SLURM_PROCID)) || echo $SLURM_JOB_ID')
    wait_for_totals "$job"
    read_comment "$job" | jq -e '.tags.k == "alone" and .nodes == 2 and .nodes_measured == 1 and .partial'
    check_comment_time "$job" 1
    read_record "$job" c2 | jq -e '(.complete or .incomplete_of == "processes") and .tags.k == "alone"'
}

@test "salloc with two steps on two nodes" {
    local job
    job=$(alice salloc -Q -N2 --tag=k=salloc bash -c 'srun sleep 0.5; srun sleep 0.5; echo $SLURM_JOB_ID')
    wait_for_totals "$job"
    read_comment "$job" | jq -e '.tags.k == "salloc" and .nodes == 2'
    check_comment_time "$job" 1
    read_record "$job" c1 | jq -e '(.complete or .incomplete_of == "processes") and .tags.k == "salloc"'
}

@test "a step's own tag stands in the record, the job's in sacct" {
    local job
    job=$(submit --tag=a=job --wrap 'srun --tag=b=step sleep 0.5')
    wait_for_totals "$job"
    read_comment "$job" | jq -e '.tags.a == "job"'
    read_record "$job" c1 | jq -e '.tags.b == "step"'
}

@test "cancelled: no comment until \`steelyard publish\` has run, the record is complete" {
    local job
    job=$(submit --tag=k=gone --wrap 'sleep 60')
    wait_on login 30 "grep -q gone $RECORDS/$job/c1.*.json"
    alice scancel "$job"
    wait_for_end "$job"
    [[ -z $(alice sacct -X -n -P -j "$job" -o AdminComment) ]]
    [[ $(read_state "$job") == CANCELLED* ]]
    read_record "$job" c1 | jq -e '.tags.k == "gone"'
}

@test "0 samples a second: totals, and no samples" {
    local job
    job=$(submit --sample-rate=0 --wrap 'sleep 1')
    wait_for_totals "$job"
    read_record "$job" c1 | jq -e '.cpu.cpu_s > 0'
    check_comment_time "$job" 1
    read_record "$job" c1 | jq -e '(.complete or .incomplete_of == "processes") and .sampler.rate_hz == 0'
}

@test "nobody's log has an error of ours" {
    local role
    for role in c1 c2; do
        run ! run_on "$role" sh -c 'diff /tmp/before /var/log/slurm/slurmd.log | grep "error: steelyard"'
    done
}
