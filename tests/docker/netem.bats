#!/usr/bin/env bats
# Network conditions and cold caches that cannot be had: refused where the user sees it,
# and no node is drained. What can be had is tested on virtual nodes, whose kernel has sch_netem.
# shellcheck disable=SC2016 # what is in single quotes is for the shell of a container
# shellcheck disable=SC2030,SC2031 # each test is a shell of its own

load cluster

readonly POLICY=/etc/steelyard/netem.conf

policy() { # LINES ROLE…
    local role
    for role in "${@:2}"; do
        on "$role" sh -c "mkdir -p ${POLICY%/*} && printf '$1' >$POLICY"
    done
}

teardown() {
    local role
    for role in c1 c2 login; do
        on "$role" rm -f "$POLICY"
    done
    complaints
}

# A batch job is refused on its node: its state, its one line, and nothing left behind.
refused_on_node() { # SENTENCE OPTIONS…
    local job before
    before=$(on c1 tc qdisc show)
    job=$(alice sbatch --parsable -w c1 -o /home/alice/refused "${@:2}" --wrap 'touch ran')
    ended "$job"
    run -0 alice sacct -X -n -P -j "$job" -o State,ExitCode
    [[ $output == "FAILED|4:0" ]]
    run -0 alice cat refused
    [[ ${#lines[@]} == 1 && $output == "steelyard: $2: "*"$1"* ]]
    run ! alice test -e ran
    [[ $(on c1 tc qdisc show) == "$before" ]]
    run -0 on c1 sh -c 'ls /run/steelyard/netem 2>/dev/null | wc -l'
    [[ $output == 0 ]]
    all_idle
}

@test "without a policy: exit code 4, one sentence, the job's program does not run, the node is not drained" {
    local option
    for option in --netem=delay=50ms --cache=cold; do
        refused_on_node "no $POLICY" "$option"
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
    policy 'enabled yes\nmax_delay 100ms\n' login
    run ! alice sbatch -J early --netem=delay=200ms --wrap true
    [[ $output == *"sbatch: error: steelyard: --netem=delay=200ms: "*100ms*"$POLICY"* ]]
    run -0 alice sacct -X -n --name=early
    [[ -z $output ]]
}

@test "a node is not shaped for a job that shares it" {
    policy 'enabled yes\nexclusive_only yes\n' c1 c2 login
    refused_on_node "exclusive_only in $POLICY" --netem=delay=5ms
}

@test "a kernel without sch_netem: a whole node's job is told so" {
    ! on c1 tc qdisc add dev lo root netem delay 1ms 2>/dev/null || {
        on c1 tc qdisc del dev lo root
        skip "this kernel has sch_netem"
    }
    policy 'enabled yes\n' c1 c2 login
    refused_on_node "sch_netem" --netem=delay=5ms --exclusive
}

@test "none and warm are for everybody" {
    local job
    job=$(submit -w c1 --netem=none --cache=warm --wrap true)
    ended "$job"
    [[ $(state "$job") == COMPLETED ]]
}

@test "what was refused is in the accounting" {
    local job
    job=$(submit -w c1 --tag=k=v --netem=delay=50ms --wrap true)
    ended "$job"
    until_on login 30 "[[ \$(sacct -X -n -P -j $job -o AdminComment) == *delay=50ms* ]]"
    comment "$job" | jq -e '.tags.k == "v" and .netem == "delay=50ms" and .netem_valid == null'
}
