#!/bin/bash
# guest_init.sh runs this: Slurm on one node, and checks of the plugin with this layout of cgroups. Prints
# ok and not ok; the evidence is in OUT, a row of the table in OUT/row.
set -euo pipefail
# shellcheck source=tests/guests/layouts/slurm.sh
source "${BASH_SOURCE[0]%/*}/slurm.sh"
readonly spins=20000

# shellcheck disable=SC2317 # measure_well runs it
print_cgroups() { # PATTERN of a command line: the cgroups of its processes
    local process line
    for process in /proc/[0-9]*; do
        line=$(tr '\0' ' ' 2>/dev/null <"$process/cmdline") || continue
        [[ ! $line =~ $1 ]] || cat "$process/cgroup"
    done
}

# shellcheck disable=SC2317 # check runs it
is_near() { # A B LIMIT; false when one of them is no number
    [[ $1 =~ ^[0-9.]+$ && $2 =~ ^[0-9.]+$ ]] &&
        awk -v a="$1" -v b="$2" -v limit="$3" 'BEGIN { exit !(a - b <= limit && b - a <= limit) }'
}

# `times` misses a shell's usage before and after it, and UML charges time in which the host had taken the
# processor away: of 40 jobs at loads of 4 to 12 the ends of two or three shells were 0.00 to 0.04 s in 36,
# 0.09 to 0.15 s in the others. So a larger difference is measured twice more, and the median counts. A
# slurmstepd's end that is charged to the job is 0.12 to 0.25 s, a whole slurmstepd half a second. Measured
# jobs do not wait in a loop of short processes: with hundreds of them the cgroup once had 2 of 40 s more
# than their parent, at a load of 40, for an unknown reason.
# shellcheck disable=SC2317 # check runs it
is_measured_right() { # RECORD TRUTH
    is_near "$1" "$2" "$(awk -v truth="$2" 'BEGIN { print 0.06 + 0.02 * truth }')"
}

# Check a measurement. FUNCTION sets `whole` and `truth`; so does this.
measure_well() { # NAME FUNCTION
    local -r name=$1
    local found
    "$2"
    found="$whole $truth"
    if ! is_measured_right "$whole" "$truth"; then
        echo "measured again: $whole of $truth"
        for _ in 1 2; do
            "$2"
            found+=$'\n'"$whole $truth"
        done
        read -r _ whole truth < <(awk '{ print $1 - $2, $0 }' <<<"$found" | sort -g | sed -n 2p)
    fi
    check "$name" is_measured_right "$whole" "$truth"
}

# Sum the output of shells' `times`: minutes and seconds of shells and their children.
# shellcheck disable=SC2317 # measure_well runs it
sum_seconds() { # FILE…
    print_columns "$@" | awk '{ s += 60 * ($1 + $3) + $2 + $4 } END { print s }'
}

# shellcheck disable=SC2317 # measure_well runs it
sum_user_seconds() { # FILE…
    print_columns "$@" | awk '{ s += 60 * $1 + $2 } END { print s }'
}

# shellcheck disable=SC2317 # those above run it
print_columns() { # FILE…
    sed -E 's/([0-9]+)m([0-9.]+)s/\1 \2/g' "$@"
}

# shellcheck disable=SC2016 # the job's own
readonly spin='spin() { i=0; while [ $i -lt $1 ]; do i=$((i + 1)); done; times >"$2"; }'

# shellcheck disable=SC2317 # measure_well runs it
measure_steps() {
    local job
    rm -f "$site"/tmp/{go,runs,times.*}
    mkfifo -m 644 "$site/tmp/go"
    job=$(submit "#!/bin/sh
$spin
cat /proc/self/cgroup >$site/tmp/task
srun sh -c '$spin; spin $spins $site/tmp/times.step'
: >$site/tmp/runs
read go <$site/tmp/go
spin $spins $site/tmp/times.batch")
    wait_until "$patience_s" test -e "$site/tmp/runs"
    cp "$site/tmp/task" "$out/task"
    print_cgroups "^slurmstepd: \[$job.extern\]" >"$out/stepd"
    print_cgroups "steelyard-node sample .*--job-id $job " >"$out/sampler"
    echo >"$site/tmp/go"
    wait_until "$patience_s" has_record "$job"
    cp "$site/records/$job/"*.json "$out/record.json"
    truth=$(sum_seconds "$site"/tmp/times.*)
    whole=$(read_record "$job" cpu.cpu_s) last=$whole
    in_programs=$(read_record "$job" cpu.user_s) in_kernel=$(read_record "$job" cpu.system_s)
    truth_in_programs=$(sum_user_seconds "$site"/tmp/times.*)
    cpu=$(read_record "$job" cpu.source) memory=$(read_record "$job" memory.source)
    complete=$(read_record "$job" complete)
}

check_cpu_time() {
    measure_well "cpu_s is what the shells have used" measure_steps
    measured="$whole of $truth"
    [[ $cpu != cgroup* ]] || check_cpu_times
}

# Check user and system time, of the last measurement; `whole` and `truth` are of the median one.
check_cpu_times() {
    check "user time is what the shells have used" is_measured_right "$in_programs" "$truth_in_programs"
    check "user and system time are all there is" \
        is_near "$(awk -v u="$in_programs" -v s="$in_kernel" 'BEGIN { print u + s }')" "$last" 0.00001
}

# Check the cgroups of the job and its sampler. The job's cgroup is the one above /step_ in v2.
check_cgroups() {
    local group
    group=$(sed -nE 's|^[0-9]+:[^:]*:(.+)/step_.*|\1|p' "$out/task" | sort -u)
    where=$(sed -nE 's|^0::(/.+)|\1|p; s|^[0-9]+:freezer:||p' "$out/sampler" | sort -u)
    job_group=${group##*/}
    check "the sampler runs" test -s "$out/sampler"
    if [[ $layout == none ]]; then
        check "no group of the job's" test -z "$group"
        check "not complete: nobody counts what no step waits for" test "$complete" = False
    else
        check "a group of the job's" test -n "$group"
        check "the record is complete" test "$complete" = True
        check "the sampler is not in it" test -z "$(grep -F "$group" "$out/sampler")"
    fi
    case $layout in
    v1)
        check "CPU time by cpuacct" test "$cpu" = cgroup1
        check "the sampler is where slurmd's groups begin" test "$where" = "${group%%/uid_*}"
        ;;
    none) check "CPU time by its processes" test "$cpu" = processes ;;
    *)
        check "CPU time by cpu.stat" test "$cpu" = cgroup2
        check "the sampler is beside slurmd's own" test "$where" = "${group%/*}/system"
        ;;
    esac
}

print_fastest_ms() { # FILE: the shortest round trip in ping's output
    awk -F'[=/ ]+' '/^rtt/ { print $6 }' "$1"
}

# Run two jobs in parallel on the node, one of them shaped.
check_shaping() {
    local shaped free
    free=$(submit "#!/bin/sh
until test -e $site/tmp/shaped; do sleep 0.2; done
ping -n -c5 -i 0.3 10.99.0.1")
    shaped=$(submit "#!/bin/sh
: >$site/tmp/shaped
ping -n -c5 -i 0.3 10.99.0.1" --netem=delay=50ms)
    wait_until "$patience_s" has_record "$shaped"
    wait_until "$patience_s" has_record "$free"
    cp "$site/tmp/out.$shaped" "$out/shaped"
    cp "$site/tmp/out.$free" "$out/free"
    rtt="$(print_fastest_ms "$out/shaped") and $(print_fastest_ms "$out/free")"
    check "50 ms in the shaped job (ms: $rtt)" is_near "$(print_fastest_ms "$out/shaped")" 55 5
    check "and none in the job beside it" is_near "$(print_fastest_ms "$out/free")" 5 5
    check "the condition held" test "$(read_record "$shaped" network_conditions.valid)" = True
}

# shellcheck disable=SC2317 # measure_well runs it
measure_asynchronous() {
    local job
    rm -f "$site"/tmp/async.*
    job=$(submit "#!/bin/sh
$spin
srun --overlap --async sh -c '$spin; spin $spins $site/tmp/async.1'
srun --overlap --async sh -c '$spin; spin $spins $site/tmp/async.2'
swait
spin 10 $site/tmp/async.0" --stepmgr)
    wait_until "$patience_s" has_record "$job"
    cp "$site/records/$job/"*.json "$out/async.json"
    truth=$(sum_seconds "$site"/tmp/async.*)
    whole=$(read_record "$job" cpu.cpu_s)
}

# Slurm 26.05: asynchronous steps.
check_asynchronous_steps() {
    [[ $(srun --help) == *--async* ]] || return 0
    measure_well "a job of asynchronous steps is measured whole" measure_asynchronous
    async="$whole of $truth"
}

configure
start
check_cpu_time
check_cgroups
check_shaping
check_asynchronous_steps
check "nothing is drained" is_idle
grep -h 'error:.*steelyard' "$site/log/slurmd.log" >"$out/complaints" || :
check "no complaint" test ! -s "$out/complaints"
printf '%s|%s|%s|%s|%s|%s|%s|%s\n' "$(slurmd -V | cut -d' ' -f2)" "$layout" "${job_group:--}" "$cpu, $memory" "$measured" \
    "${where:--}" "$rtt" "${async:--}" >"$out/row"
exit $failed
