#!/bin/busybox sh
# shellcheck shell=dash
# Known loads, counted by the kernel that runs here. Into /out: NAME.truth, what the load says of
# itself; NAME.counted or NAME.record, what was counted; what status and doctor say.
set -eu
readonly bpf=/bin/steelyard-bpf node=/bin/steelyard-node
readonly children=50 crowd=30
cd /out

until_there() { # COMMAND…
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] || return 1
        sleep 0.1
    done
}

count() { # NAME HOW OPTION…
    name=$1 how=$2
    shift 2
    $bpf count "$@" -- load "$how" $children 0 >both
    sed -n 1p both >"$name.truth"
    sed -n 2p both >"$name.counted"
}

record_of() { # JOB NAME
    cat "records/$1"/*.json >"$2.record"
    cat "records/$1"/*.csv >"$2.samples"
}

measure() { # a command that root starts
    $node sample --rate 10 --job-id command --record-dir records --bpf $bpf -- \
        load ignore $children 1000 >command.truth
    record_of command command
}

child_of() { # PID: its last
    awk '{ print $NF }' "/proc/$1/task/$1/children" 2>/dev/null
}

is_written() { # JOB
    [ -s "$(echo "records/$1"/*.json)" ]
}

# A job as a scheduler has it: its sampler hears of it; the root is no part of it.
attach() { # NAME RATE COMMAND, which says a line
    mkfifo "/run/$1.go"
    sh -c "read _; $3; read _" <>"/run/$1.go" >"$1.truth" &
    root=$!
    $node sample --rate "$2" --job-id "$1" --record-dir records --bpf $bpf --control "/run/$1" \
        --pid $root &
    sampler=$!
    until_there is_written "$1"
    $node send --control "/run/$1" totals >/dev/null
    grep ^CapPrm: "/proc/$(child_of $sampler)/status" | cut -f 2 >"$1.rights"
    echo >"/run/$1.go"
    until_there test -s "$1.truth"
    $node send --control "/run/$1" end
    wait $sampler
    echo >"/run/$1.go"
    wait $root
    record_of "$1" "$1"
}

is_sleep() { # PID
    [ "$(cat "/proc/$(child_of "$1")/comm" 2>/dev/null)" = sleep ]
}

# Who is moved into its cgroup.
move() {
    mkdir /sys/fs/cgroup/job
    mkfifo /run/move.go
    load wait $crowd 0 moved <>/run/move.go >move.said &
    moved=$!
    until_there grep -q ready move.said
    $bpf count --cgroup /job -- sleep 1000 >move.counted 2>move.err &
    counter=$!
    until_there is_sleep $counter
    echo $moved >/sys/fs/cgroup/job/cgroup.procs
    echo >/run/move.go
    wait $moved
    sed -n 2p move.said >move.truth
    kill "$(child_of $counter)"
    wait $counter || true
}

uname -r >release
mkdir records
$bpf status >can
$bpf status --json >status.json
$node doctor --only "kernel counts" --bpf=yes --node-program $node --json >doctor.json
for how in wait ignore orphan thread exec; do
    count $how $how
done
measure
attach attached 10 "load ignore $crowd 1000"
attach seldom 0 "load ignore $crowd 1000"
attach large 10 "dd if=/dev/zero of=/dev/null bs=64M count=1; echo done"
move
ls /sys/fs/bpf/steelyard >left
