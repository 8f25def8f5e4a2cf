#!/bin/bash
# What guest_init.sh runs in an emulated machine, whose kernel can count (that of User Mode Linux
# cannot): Slurm on cgroup version 2, slurmd keeps the program that counts loaded, and what jobs have used
# whose processes nobody waits for is in their records to the byte. Prints ok and not ok.
set -euo pipefail
# shellcheck source=tests/guests/layouts/slurm.sh
source "${BASH_SOURCE[0]%/*}/slurm.sh"
readonly bpf=$build/bin/steelyard-bpf load=$out/load children=100

# shellcheck disable=SC2317 # until_done runs it
says() { # WORDS: what steelyard-bpf says of the program
    "$bpf" status | grep -q "^$1,"
}

# shellcheck disable=SC2317 # check runs it
same_bytes() { # JOB FILE: what the load has said of itself
    python3 - "$(echo "$site/records/$1/"*.json)" "$2" <<'END'
import json, sys
record, truth = (json.load(open(name)) for name in sys.argv[1:])
print("bytes:", {name: (record["io"][name], value) for name, value in truth.items()})
sys.exit(not truth or any(record["io"][name] != value for name, value in truth.items()))
END
}

# shellcheck disable=SC2317 # check runs it
parts_add_up() { # JOB
    awk -v all="$(of_record "$1" cpu.cpu_s)" -v user="$(of_record "$1" cpu.user_s)" \
        -v sys="$(of_record "$1" cpu.system_s)" \
        'BEGIN { d = all - user - sys; exit !(all > 0.05 && d * d < 1e-10) }'
}

judge() { # NAME JOB FILE
    until_done "$patience_s" has_record "$2"
    cp "$site/records/$2/"*.json "$out/$1.json"
    check "$1: every byte" same_bytes "$2" "$3"
    check "$1: I/O by the kernel's count" test "$(of_record "$2" io.source)" = bpf
    check "$1: no end was missed" test "$(of_record "$2" bpf.missed_ends)" = 0
    check "$1: who is moved into its group is counted" test "$(of_record "$2" bpf.by_cgroup)" = True
    check "$1: CPU time by cpu.stat" test "$(of_record "$2" cpu.source)" = cgroup2
    check "$1: user and system time are all there is" parts_add_up "$2"
}

batch() {
    local job
    job=$(submit "#!/bin/sh
exec $load ignore $children 1000 >$site/tmp/known.batch")
    judge "a batch job" "$job" "$site/tmp/known.batch"
}

step() {
    salloc -Q -n1 sh -c "echo \$SLURM_JOB_ID; srun $load orphan $children 1000" >"$site/tmp/said"
    sed 1d "$site/tmp/said" >"$site/tmp/known.step"
    judge "a step" "$(head -n 1 "$site/tmp/said")" "$site/tmp/known.step"
}

configure
start
check "slurmd has loaded the program that counts" says loaded
batch
step
kill "$(<"$site/run/slurmd.pid")"
check "unloaded at slurmd's end" until_done "$patience_s" says "not loaded"
grep -h 'error:.*steelyard' "$site/log/slurmd.log" >"$out/complaints" || :
check "no complaint" test ! -s "$out/complaints"
exit $failed
