#!/usr/bin/env bats
# Known loads, run by an ordinary user in every way a job can run, and weighed (docs/calibrate.md).

load cluster

setup() {
    all_idle
    cd "$BATS_TEST_TMPDIR" || return 1
}

@test "steelyard calibrate: this scale is right" {
    run alice steelyard calibrate --scheduler slurm --quick
    echo "$output"
    [[ $status == 0 && $output == *" 0 wrong: this scale is right" ]]
}

@test "steelyard show has what sacct has, and the load's processor time" {
    local job burn='timeout 1 sh -c "while :; do :; done" || :'
    job=$(submit -N2 -n2 --tag=k=shown --wrap "srun sh -c '$burn'")
    weighed "$job"
    record "$job" c1 >one.json
    record "$job" c2 >two.json
    run -0 alice steelyard show "$job"
    [[ $output == *"k=shown"* && $output == *" c1 "* && $output == *" c2 "* ]]
    alice steelyard show --json "$job" >shown
    jq -e --argjson sacct "$(comment "$job")" '.totals.cpu_s == $sacct.cpu_s' shown
    jq -e -s '(.[0].cpu.cpu_s + .[1].cpu.cpu_s) as $records |
        .[2].totals.cpu_s as $shown | $shown <= $records + 0.001 and $shown > $records - 0.1' one.json two.json shown
}
