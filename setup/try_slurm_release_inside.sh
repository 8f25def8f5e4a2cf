#!/bin/bash
# What setup/try_slurm_release.sh runs in the chroot, as the first process of its namespaces.
set -euo pipefail

readonly site=/site user=4711
host=$(hostname -s)
readonly host
export SLURM_CONF=$site/slurm.conf
failed=0
# shellcheck source=setup/slurm_in_chroot.sh
source "${BASH_SOURCE[0]%/*}/slurm_in_chroot.sh"

prepare() {
    set_up_system
    add_ordinary_user
}

build() {
    make -s -C /src -j"$(nproc)" install-slurm PREFIX=/usr/local
    install -D -m 0644 /usr/local/share/doc/steelyard/netem.conf.example /etc/steelyard/netem.conf
    cp /usr/local/share/doc/steelyard/plugstack.conf.example "$site/plugstack.conf"
}

check() { # NAME EXPECTED FOUND
    if [[ $3 == *"$2"* ]]; then
        echo "ok $1"
    else
        echo "not ok $1: expected $2, found $3"
        failed=1
    fi
}

# shellcheck disable=SC2317 # wait_until runs it
has_ended() { [[ $(as_user sacct -X -n -P -j "$1" -o End) == 20* ]]; }

batch() { # OPTIONS…: prints the job's id when it has ended
    local -r job=$(as_user sbatch --parsable -o "/tmp/out" "$@")
    wait_until 60 has_ended "$job"
    sleep 1 # the accounting gets the comment a moment later
    echo "$job"
}

row() { as_user sacct -X -n -P -j "$1" -o State,ExitCode,AdminComment; }
last() { as_user sacct -X -n -P -o State,ExitCode,AdminComment | tail -1; }
queue() { tc qdisc show dev eth9; }

checks() {
    local job before complaints
    check "options in --help" "--netem=SPEC" "$(as_user srun --help)"
    job=$(batch -N2 -n2 --tag=k=two --wrap "srun sleep 2")
    check "tags and both nodes' totals" '"tags":{"k":"two"},"nodes":2,"elapsed_s":' "$(row "$job")"
    check "a record of each node" "2" "$(find "/var/lib/steelyard/records/$job" -name '*.json' | wc -l)"
    as_user srun -w "$host" sleep 3
    sleep 1
    check "srun alone" '"nodes":1,"elapsed_s":' "$(last)"
    check "a faulty option" "expected a time with unit" "$(as_user sbatch --netem=delay=50 --wrap true 2>&1 || :)"
    before=$(queue)
    job=$(batch --exclusive -w "$host" --netem=rate=10mbit --wrap "sleep 1; tc qdisc show dev eth9")
    check "a condition is in force" "rate 10Mbit" "$(cat /tmp/out)"
    check "and in the accounting" '"netem":"rate=10mbit","netem_valid":true' "$(row "$job")"
    check "and undone by the job's end" '"undone_by": "job"' "$(cat "/var/lib/steelyard/records/$job/"*.json)"
    check "to the letter" "$before" "$(queue)"
    job=$(batch -w "$host" --netem=rate=10mbit --wrap true)
    check "a condition that is refused" "FAILED|4:0" "$(row "$job")"
    check "with a line that says why" "exclusive_only in /etc/steelyard/netem.conf" "$(cat /tmp/out)"
    job=$(as_user sbatch --parsable -o /dev/null --tag=k=gone --wrap "sleep 60")
    wait_until 30 grep -q gone "/var/lib/steelyard/records/$job/"*.json
    as_user scancel "$job"
    wait_until 30 has_ended "$job"
    check "a cancelled job's tags" '"k": "gone"' "$(cat "/var/lib/steelyard/records/$job/"*.json)"
    accounting "$job"
    complaints=$(grep -h 'error: steelyard' "$site/log/"slurmd.*.log | grep -v exclusive_only || :)
    check "no complaint in slurmd's log" "none" "${complaints:-none}"
}

# What `steelyard publish` writes by: to the byte; and joules where this Slurm takes them.
accounting() { # JOB
    local -r wish='{"cluster":"try","job_id":'$1 text='{"A":"it'"'"'s \"x\" `"}'
    local joules escaped=${text//\\/\\\\}
    escaped=${escaped//\"/\\\"}
    printf '%s,"own":"%s"}\n' "$wish" "$escaped" |
        /usr/local/libexec/steelyard/steelyard-slurmdb >/dev/null
    check "a comment of a job that is over" "{\"steelyard\":$text}" "$(row "$1")"
    joules=$(printf '%s,"energy_j":1234}\n' "$wish" | /usr/local/libexec/steelyard/steelyard-slurmdb)
    [[ $joules == *"25.11 and later"* ]] ||
        check "and its joules" 1234 "$(as_user sacct -X -n -P -j "$1" -o ConsumedEnergyRaw)"
}

# Every way a job can run, measured, by an ordinary user; with the Python of the suite.
calibrate() {
    local code=0
    mkdir -p /src/build/src
    ln -sfn ../.. /src/build/src/steelyard
    as_user env PYTHONPATH=/src/build/src COLUMNS=120 python3 -m steelyard.wrappers.commands.cli \
        calibrate --scheduler slurm --details || code=$?
    check "the calibration" 0 "$code"
}

prepare
build
slurmd -V
configure
start
checks
calibrate
exit $failed
