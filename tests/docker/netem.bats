#!/usr/bin/env bats
# Network conditions and cold caches that cannot be set are refused with a message to the user, and no
# node is drained. Virtual nodes, whose kernel has sch_netem, test conditions in force.
# shellcheck disable=SC2016 # single-quoted text is for the shell of a container
# shellcheck disable=SC2030,SC2031 # each test is a shell of its own

load cluster

readonly POLICY=/etc/steelyard/netem.conf

write_policy() { # LINES ROLE…
    local role
    for role in "${@:2}"; do
        run_on "$role" sh -c "mkdir -p ${POLICY%/*} && printf '$1' >$POLICY"
    done
}

teardown() {
    local role
    for role in c1 c2 login; do
        run_on "$role" rm -f "$POLICY"
    done
    report_failure
}

# Check a batch job that its node refuses: its state, its one line of output, and no leftovers.
check_refusal_on_node() { # SENTENCE OPTIONS…
    local job before
    before=$(run_on c1 tc qdisc show)
    job=$(alice sbatch --parsable -w c1 -o /home/alice/refused "${@:2}" --wrap 'touch ran')
    wait_for_end "$job"
    run -0 alice sacct -X -n -P -j "$job" -o State,ExitCode
    [[ $output == "FAILED|4:0" ]]
    run -0 alice cat refused
    [[ ${#lines[@]} == 1 && $output == "steelyard: $2: "*"$1"* ]]
    run ! alice test -e ran
    [[ $(run_on c1 tc qdisc show) == "$before" ]]
    run -0 run_on c1 sh -c 'ls /run/steelyard/netem 2>/dev/null | wc -l'
    [[ $output == 0 ]]
    wait_until_idle
}

@test "without a policy: exit code 4, one sentence, the job's program does not run, the node is not drained" {
    local option
    for option in --netem=delay=50ms --cache=cold; do
        check_refusal_on_node "no $POLICY" "$option"
    done
}

@test "srun and salloc are refused alike" {
    run -4 alice srun -w c1 --netem=delay=50ms touch ran
    [[ $output == "steelyard: --netem=delay=50ms: "*"no $POLICY"* ]]
    run -4 alice salloc -Q -w c1 --netem=delay=50ms srun touch ran
    [[ $output == *"steelyard: --netem=delay=50ms: "*"no $POLICY"* ]]
    run ! alice test -e ran
}

@test "a policy on the login node refuses before anything is queued" {
    write_policy 'enabled yes\nmax_delay 100ms\n' login
    run ! alice sbatch -J early --netem=delay=200ms --wrap true
    [[ $output == *"sbatch: error: steelyard: --netem=delay=200ms: "*100ms*"$POLICY"* ]]
    run -0 alice sacct -X -n --name=early
    [[ -z $output ]]
}

@test "a node is not shaped for a job that shares it" {
    write_policy 'enabled yes\nexclusive_only yes\n' c1 c2 login
    check_refusal_on_node "exclusive_only in $POLICY" --netem=delay=5ms
}

@test "a kernel without sch_netem: a whole node's job is told so" {
    ! run_on c1 tc qdisc add dev lo root netem delay 1ms 2>/dev/null || {
        run_on c1 tc qdisc del dev lo root
        skip "this kernel has sch_netem"
    }
    write_policy 'enabled yes\n' c1 c2 login
    check_refusal_on_node "sch_netem" --netem=delay=5ms --exclusive
}

@test "none and warm are for everybody" {
    local job
    job=$(submit -w c1 --netem=none --cache=warm --wrap true)
    wait_for_end "$job"
    [[ $(read_state "$job") == COMPLETED ]]
}

@test "what was refused is in the accounting" {
    local job
    job=$(submit -w c1 --tag=k=v --netem=delay=50ms --wrap true)
    wait_for_end "$job"
    wait_on login 30 "[[ \$(sacct -X -n -P -j $job -o AdminComment) == *delay=50ms* ]]"
    read_comment "$job" | jq -e '.tags.k == "v" and .netem == "delay=50ms" and .netem_valid == null'
}
