#!/bin/busybox sh
# shellcheck shell=dash
# Known loads, counted by the running kernel. Writes to /out: NAME.truth, the load's own report;
# NAME.counted or NAME.record, the counted usage; the output of status.
set -eu
readonly bpf=/bin/steelyard-bpf node=/bin/steelyard-node
readonly children=50 crowd=30
cd /out

wait_until() { # COMMAND…
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] || return 1
        sleep 0.1
    done
}

count_load() { # NAME HOW OPTION…
    name=$1 how=$2
    shift 2
    $bpf count "$@" -- load "$how" $children 0 >both
    sed -n 1p both >"$name.truth"
    sed -n 2p both >"$name.counted"
}

save_record() { # JOB NAME
    cat "records/$1"/*.json >"$2.record"
    cat "records/$1"/*.csv >"$2.samples"
}

# A sampler waits 10 s for it: emulated, the kernel's check of the programs may take longer.
load_count() { $bpf load; }

measure_command() { # a command that root starts
    load_count
    $node sample --rate 10 --job-id command --record-dir records --bpf $bpf -- \
        load ignore $children 1000 >command.truth
    save_record command command
}

print_last_child() { # PID
    awk '{ print $NF }' "/proc/$1/task/$1/children" 2>/dev/null
}

is_written() { # JOB
    [ -s "$(echo "records/$1"/*.json)" ]
}

# Run a job as a scheduler does: the sampler is attached to its root process.
run_attached_job() { # NAME RATE COMMAND, which prints a line
    load_count
    mkfifo "/run/$1.go"
    sh -c "read _; $3; read _" <>"/run/$1.go" >"$1.truth" &
    root=$!
    $node sample --rate "$2" --job-id "$1" --record-dir records --bpf $bpf --control "/run/$1" \
        --pid $root &
    sampler=$!
    wait_until is_written "$1"
    $node send --control "/run/$1" totals >/dev/null
    grep ^CapPrm: "/proc/$(print_last_child $sampler)/status" | cut -f 2 >"$1.rights"
    echo >"/run/$1.go"
    wait_until test -s "$1.truth"
    $node send --control "/run/$1" end
    wait $sampler
    echo >"/run/$1.go"
    wait $root
    save_record "$1" "$1"
}

is_sleep() { # PID
    [ "$(cat "/proc/$(print_last_child "$1")/comm" 2>/dev/null)" = sleep ]
}

# Run a load that is moved into the counted cgroup.
run_moved_job() {
    mkdir /sys/fs/cgroup/job
    mkfifo /run/move.go
    load wait $crowd 0 moved <>/run/move.go >move.said &
    moved=$!
    wait_until grep -q ready move.said
    $bpf count --cgroup /job -- sleep 1000 >move.counted 2>move.err &
    counter=$!
    wait_until is_sleep $counter
    echo $moved >/sys/fs/cgroup/job/cgroup.procs
    echo >/run/move.go
    wait $moved
    sed -n 2p move.said >move.truth
    kill "$(print_last_child $counter)"
    wait $counter || true
}

uname -r >release
mkdir records
$bpf status >can
$bpf status --json >status.json
for how in wait ignore orphan thread exec; do
    count_load $how $how
done
measure_command
run_attached_job attached 10 "load ignore $crowd 1000"
run_attached_job seldom 0 "load ignore $crowd 1000"
run_attached_job large 10 "dd if=/dev/zero of=/dev/null bs=64M count=1; echo done"
run_moved_job
ls /sys/fs/bpf/steelyard >left
