#!/usr/bin/env bats
# `steelyard publish` writes missing totals of ended jobs from their records to the accounting. The plugin
# runs with admin_comment=no, so that the accounting has no totals.
# shellcheck disable=SC2016 # single-quoted text is for the shell of a container
# shellcheck disable=SC2030,SC2031 # each test is a shell of its own

load cluster

publish() { run_on login steelyard publish --hours 1 --json "$@"; }
comments() { alice sacct -X -n -P -j "$JOBS" -o JobIDRaw,AdminComment; }
comment_of() { alice sacct -X -n -P -j "$1" -o AdminComment | head -n 1; }
sum_records() { # NAME JOB: of the records of its nodes
    run_on login sh -c "cat $RECORDS/$2/*.json" | jq -s "map($1) | add"
}

# A synthetic RAPL zone of 100 W: this machine's containers may have none.
synthetic_rapl() {
    run_on c1 sh -c 'zone=/rapl/sys/class/powercap/intel-rapl:0 && mkdir -p $zone && ln -s /proc /rapl &&
        echo package-0 >$zone/name && echo 262143328850 >$zone/max_energy_range_uj &&
        printf "%s\n" "#!/bin/sh" "verb=\$1; shift" "[ \$verb != sample ] || set -- --root=/rapl \"\$@\"" \
            "exec /usr/local/libexec/steelyard/steelyard-node \$verb \"\$@\"" >/rapl/node && chmod 755 /rapl/node &&
        ln -s /usr/local/libexec/steelyard/steelyard-slurmdb /rapl/'
    # Overwritten in place: the file is never empty.
    docker exec -d "$STEELYARD_DOCKER-c1" bash -c 'at=${EPOCHREALTIME/./}
        while [[ -e /rapl ]]; do
            printf "%012d\n" $(((${EPOCHREALTIME/./} - at) * 100)) 1<>/rapl/sys/class/powercap/intel-rapl:0/energy_uj
            sleep 0.05
        done'
    wait_on c1 30 '[[ -s /rapl/sys/class/powercap/intel-rapl:0/energy_uj ]]'
}

# Run a job with an exclusive node and joules; prints its id.
run_exclusive_job() {
    local job
    synthetic_rapl
    run_on c1 sed -i.told 's|node_program=[^ ]*|node_program=/rapl/node|' /etc/slurm/plugstack.conf
    job=$(submit -w c1 --exclusive --wrap 'sleep 3')
    wait_for_end "$job"
    wait_until_idle
    run_on c1 mv /etc/slurm/plugstack.conf.told /etc/slurm/plugstack.conf
    run_on c1 rm -r /rapl
    echo "$job"
}

setup_file() {
    local job
    wait_until_idle
    add_plugin_option admin_comment=no
    ALONE=$(run_exclusive_job)
    TWO=$(submit -N2 -n2 --tag=k=two --wrap 'srun sleep 1')
    HET=$(submit -n1 -w c1 --tag=k=het : -n1 -w c2 --wrap 'srun --het-group=0,1 sleep 1')
    wait_until_idle
    OBJECT=$(submit_gated -w c1)
    TEXT=$(submit_gated -w c1)
    GONE=$(submit -w c2 --wrap 'sleep 60')
    for job in "$OBJECT" "$TEXT" "$GONE"; do
        wait_for_state "$job" RUNNING
    done
    run_on ctl scontrol update "jobid=$OBJECT" 'admincomment={"site": {"cost":0.10}}'
    run_on ctl scontrol update "jobid=$TEXT" 'admincomment=JS1:H4sI'
    release_job "$OBJECT"
    release_job "$TEXT"
    wait_on login 30 "ls $RECORDS/$GONE/c2.*.csv"
    alice scancel "$GONE"
    JOBS=$ALONE,$TWO,$HET,$OBJECT,$TEXT,$GONE
    for job in "$TWO" "$HET" "$OBJECT" "$TEXT" "$GONE"; do
        wait_for_end "$job"
    done
    wait_until_idle
    restore_plugin_options
    export ALONE TWO HET OBJECT TEXT GONE JOBS
    sleep 62 # the last minute is left to Slurm
}

@test "before: the accounting has nothing of ours" {
    run ! grep steelyard <<<"$(comments)"
}

@test "what is to be written is told, and not written; an ordinary user may not" {
    local before
    before=$(comments)
    publish --dry-run | tee "$BATS_TEST_TMPDIR/said"
    jq -e --argjson first "$ALONE" '.written == 0 and .failed == {} and
        ([.planned[].job_id | select(. >= $first)] | length) == 7' "$BATS_TEST_TMPDIR/said"
    run -3 alice steelyard publish --hours 1 --record-dir "$RECORDS"
    [[ $(comments) == "$before" ]]
}

@test "every job has its records' totals, others' text stays; a second pass changes nothing" {
    local before
    local -i wanted
    # Short jobs of the files before this one may lack theirs, too.
    wanted=$(publish --dry-run | jq '.planned | length')
    publish | tee "$BATS_TEST_TMPDIR/said"
    jq -e --arg text "$TEXT" --argjson wanted "$wanted" '.written == $wanted - 1 and .failed == {} and (.unchanged | keys) == [$text]' "$BATS_TEST_TMPDIR/said"
    before=$(comments)
    publish | jq -e '.written == 0 and .failed == {}'
    [[ $(comments) == "$before" ]]
    [[ $(comment_of "$TEXT") == JS1:H4sI ]]
    [[ $(comment_of "$OBJECT") == '{"site": {"cost":0.10},"steelyard":{'* ]]
}

@test "two nodes: the totals are those of both records" {
    # Nobody counts all processes of a job here: such a sum of CPU time is no total. Of times the longer
    # one counts.
    local longest
    longest=$(run_on login sh -c "cat $RECORDS/$TWO/*.json" | jq -s 'map(.elapsed_s) | max')
    read_comment "$TWO" | jq -e --argjson longest "$longest" \
        '.tags.k == "two" and .elapsed_s == $longest and .nodes == 2 and .nodes_measured == 2 and (.partial | not) and
            .cpu_s == null and ([.missing[][]] | index("cpu_s") != null)'
}

@test "a heterogeneous job: each component has its own" {
    local -i part
    for part in 0 1; do
        comment_of $((HET + part)) | jq -e --argjson elapsed_s "$(sum_records .elapsed_s $((HET + part)))" \
            '.steelyard | .nodes == 1 and .elapsed_s == $elapsed_s and .tags.k == "het"'
    done
}

@test "a job that was cancelled has totals, too" {
    comment_of "$GONE" | jq -e --argjson elapsed_s "$(sum_records .elapsed_s "$GONE")" \
        '.steelyard.elapsed_s == $elapsed_s'
}

@test "--energy: ConsumedEnergy is the record's, from 25.11 on; earlier releases refuse, in a sentence" {
    local joules
    joules=$(sum_records .energy.energy_j "$ALONE")
    sum_records '.energy.energy_j / .elapsed_s' "$ALONE" | jq -e '. > 80 and . < 120'
    if run_on login sh -c 'dpkg --compare-versions "$(slurmctld -V | cut -d" " -f2)" ge 25.11'; then
        publish --energy | jq -e '.written == 1 and .failed == {}'
        [[ $(alice sacct -X -n -P -j "$ALONE" -o ConsumedEnergyRaw) == $(jq -n "$joules | round") ]]
        publish --energy | jq -e '.written == 0 and .failed == {}'
    else
        run -3 --separate-stderr publish --energy
        jq -e --arg job "$ALONE" '.failed == {
            ($job): "this release of Slurm sets no job'\''s energy: 25.11 and later do"}' <<<"$output"
    fi
}
