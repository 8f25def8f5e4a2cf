#!/usr/bin/env bats
# shellcheck disable=SC2016 # single-quoted text is for the shell of a container
# Known loads, run by an ordinary user with every launch method, and measured (docs/calibrate.md).

load cluster

setup() {
    wait_until_idle
    cd "$BATS_TEST_TMPDIR" || return 1
}

@test "steelyard calibrate: this scale is right" {
    run alice steelyard calibrate --scheduler slurm --quick
    echo "$output"
    # Should it be red: which starts there were, and which the records say that they are of.
    alice sacct -X -D -n -P -o JobIDRaw,State,Start,End,ElapsedRaw,NodeList || :
    alice sh -c "cd $RECORDS && grep -oE '\"(restart_count|elapsed_s)\": \"?[0-9.]+' */*.json" || :
    [[ $status == 0 && $output == *" 0 wrong: this scale is right" ]]
}

@test "steelyard show has what sacct has, and the load's processor time" {
    local job burn='for ((i = 0; i < 300000; i++)); do :; done; times >times.$SLURM_PROCID'
    job=$(submit -N2 -n2 --tag=k=shown --wrap "srun bash -c '$burn'")
    wait_for_totals "$job"
    read_record "$job" c1 >one.json
    read_record "$job" c2 >two.json
    run -0 alice steelyard show "$job"
    [[ $output == *"k=shown"* && $output == *" c1 "* && $output == *" c2 "* ]]
    alice steelyard show --json "$job" >shown
    # The truth is what the loads' shells were told by times(2), in hundredths.
    alice sh -c 'cat times.0 times.1' | tr ' ' '\n' | sed 's/^/0/; s/m/ /; s/s$//' |
        awk '{ sum += 60 * $1 + $2 } END { print sum }' >truth
    cat truth one.json two.json | jq -e -s '.[0] as $truth | (.[1].cpu.cpu_s + .[2].cpu.cpu_s) as $measured |
        $truth > 0.1 and $measured >= $truth - 0.05 and $measured <= $truth + 0.5'
    # Nobody counts all processes of a job here: the records' sum is shown as the least, not as a total.
    jq -e -s --argjson sacct "$(read_comment "$job")" '(.[0].cpu.cpu_s + .[1].cpu.cpu_s) as $records |
        .[2].totals.cpu_s == null and (.[2].totals_at_least.cpu_s - $records | fabs) < 0.001 and
        $sacct.cpu_s == null and ([$sacct.missing[][]] | index("cpu_s") != null)' one.json two.json shown
}
