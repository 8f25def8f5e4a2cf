#!/bin/bash
# guest_init.sh runs this in an emulated machine, whose kernel supports BPF accounting (that of User Mode
# Linux does not): Slurm with cgroup v2, and slurmd keeps the BPF program loaded. Checks that records have
# every byte of jobs whose processes have no waiting parent. Prints ok and not ok.
set -euo pipefail
# shellcheck source=tests/guests/layouts/slurm.sh
source "${BASH_SOURCE[0]%/*}/slurm.sh"
readonly bpf=$build/bin/steelyard-bpf load=$out/load children=100

# shellcheck disable=SC2317 # wait_until runs it
is_status() { # STATUS of the BPF program, as steelyard-bpf prints it
    "$bpf" status | grep -q "^$1,"
}

# shellcheck disable=SC2317 # check runs it
has_same_bytes() { # JOB FILE: the load's own report
    python3 - "$(echo "$site/records/$1/"*.json)" "$2" <<'END'
import json, sys
record, truth = (json.load(open(name)) for name in sys.argv[1:])
print("bytes:", {name: (record["io"][name], value) for name, value in truth.items()})
sys.exit(not truth or any(record["io"][name] != value for name, value in truth.items()))
END
}

# shellcheck disable=SC2317 # check runs it
has_consistent_cpu_times() { # JOB
    awk -v all="$(read_record "$1" cpu.cpu_s)" -v user="$(read_record "$1" cpu.user_s)" \
        -v sys="$(read_record "$1" cpu.system_s)" \
        'BEGIN { d = all - user - sys; exit !(all > 0.05 && d * d < 1e-10) }'
}

check_record() { # NAME JOB FILE
    wait_until "$patience_s" has_record "$2"
    cp "$site/records/$2/"*.json "$out/$1.json"
    check "$1: the record is complete" test "$(read_record "$2" complete)" = True
    check "$1: every byte" has_same_bytes "$2" "$3"
    check "$1: I/O by the kernel's count" test "$(read_record "$2" io.source)" = bpf
    check "$1: no end was missed" test "$(read_record "$2" bpf.missed_ends)" = 0
    check "$1: who is moved into its group is counted" test "$(read_record "$2" bpf.by_cgroup)" = True
    # Emulated, what the job's shell does before slurmstepd puts it there may exceed 0.1 s: then the kernel's
    # count is the larger one.
    check "$1: CPU time by cpu.stat or the kernel's count" \
        grep -qx 'cgroup2\|bpf' <<<"$(read_record "$2" cpu.source)"
    check "$1: user and system time are all there is" has_consistent_cpu_times "$2"
}

check_batch_job() {
    local job
    job=$(submit "#!/bin/sh
exec $load ignore $children 1000 >$site/tmp/known.batch")
    check_record "a batch job" "$job" "$site/tmp/known.batch"
}

check_step() {
    salloc -Q -n1 sh -c "echo \$SLURM_JOB_ID; srun $load orphan $children 1000" >"$site/tmp/said"
    sed 1d "$site/tmp/said" >"$site/tmp/known.step"
    check_record "a step" "$(head -n 1 "$site/tmp/said")" "$site/tmp/known.step"
}

configure
start
check "slurmd has loaded the program that counts" is_status loaded
check_batch_job
check_step
kill "$(<"$site/run/slurmd.pid")"
check "unloaded at slurmd's end" wait_until "$patience_s" is_status "not loaded"
grep -h 'error:.*steelyard' "$site/log/slurmd.log" >"$out/complaints" || :
check "no complaint" test ! -s "$out/complaints"
exit $failed
