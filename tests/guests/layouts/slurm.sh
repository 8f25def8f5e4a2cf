# shellcheck shell=bash disable=SC2034 # variables are for the sourcing script
# Slurm on one node in a guest (guest_init.sh), and helpers for its jobs. Sourced.

readonly site=/run/site out=/run/out user=4711
readonly layout=$SY_LAYOUT build=$SY_SOURCE/build
readonly patience_s=240 # the guest's machine may be busy
export SLURM_CONF=$site/slurm.conf
failed=0

check() { # NAME CONDITION…
    local -r name=$1
    shift
    if "$@"; then
        echo "ok $name"
    else
        echo "not ok $name: $*"
        failed=1
    fi
}

wait_until() { # SECONDS COMMAND…
    local -r end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        if ((SECONDS > end)); then
            echo "not in time: $*" >&2
            tail -n 20 "$site"/log/* >&2
            grep -H incomplete_reason "$site"/records/*/*.json >&2
            return 1
        fi
        sleep 0.2
    done
}

version_is() { [[ $(slurmd -V) == *" $1."* ]]; } # 22.05

print_cgroup_v2() { printf 'CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n'; }

print_cgroup_conf() {
    case $layout in
    v1) echo CgroupPlugin=cgroup/v1 ;;
    v2 | v2-counted) print_cgroup_v2 ;;
    v2-ids) print_cgroup_v2 && echo CgroupJobIdPaths=yes ;;
    # 22.05 lacks `disabled`, and loads a plugin that is not used.
    none) if version_is 22.05; then print_cgroup_v2; else echo CgroupPlugin=disabled; fi ;;
    esac
}

configure() {
    local track=cgroup task=cgroup gather=cgroup
    [[ $layout != none ]] || { track=linuxproc task=none gather=linux; }
    mkdir -p "$site"/{spool/layout,state,log,run,records}
    mkdir -m 1777 "$site/tmp"
    chmod 755 "$site" "$site/spool"
    head -c 1024 /dev/urandom >"$site/munge.key"
    chmod 400 "$site/munge.key"
    echo "steelyard-try:x:$user:$user::/tmp:/bin/bash" >>/etc/passwd
    print_cgroup_conf >"$site/cgroup.conf"
    cat >"$site/netem.conf" <<EOF
enabled yes
exclusive_only no
devices eth9
peer 10.99.0.1
EOF
    echo "required $build/lib/spank_steelyard.so record_dir=$site/records run_dir=$site/run/steelyard \
node_program=$build/bin/steelyard-node rate=2 netem_policy=$site/netem.conf" >"$site/plugstack.conf"
    cat >"$site/slurm.conf" <<EOF
ClusterName=layout
SlurmctldHost=layout(127.0.0.1)
SlurmUser=root
AuthInfo=socket=$site/run/munge.socket
ProctrackType=proctrack/$track
TaskPlugin=task/$task
JobAcctGatherType=jobacct_gather/$gather
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PrologFlags=Contain
PlugStackConfig=$site/plugstack.conf
SlurmctldPidFile=$site/run/slurmctld.pid
SlurmdPidFile=$site/run/slurmd.pid
SlurmdSpoolDir=$site/spool/layout
StateSaveLocation=$site/state
SlurmctldLogFile=$site/log/slurmctld.log
SlurmdLogFile=$site/log/slurmd.log
SlurmdParameters=config_overrides
ReturnToService=2
NodeName=layout NodeAddr=127.0.0.1 CPUs=4
PartitionName=main Nodes=layout Default=YES
EOF
}

# shellcheck disable=SC2317 # wait_until runs it
is_idle() { [[ $(sinfo -h -t idle -o %D) == 1 ]]; }

start() {
    munged --force --key-file="$site/munge.key" --socket="$site/run/munge.socket" \
        --pid-file="$site/run/munged.pid" --log-file="$site/log/munged.log" \
        --seed-file="$site/run/munged.seed"
    slurmctld
    slurmd -N layout
    wait_until "$patience_s" is_idle
}

# shellcheck disable=SC2317 # measure_well runs it
submit() { # SCRIPT OPTIONS…
    local -r script=$1
    shift
    (cd "$site/tmp" && setpriv --reuid=$user --regid=$user --clear-groups \
        sbatch --parsable -n1 -o "$site/tmp/out.%j" "$@" <<<"$script")
}

# shellcheck disable=SC2317 # wait_until runs it
has_ended() { [[ $(scontrol -o show job "$1") == *" EndTime=20"* && $(squeue -h -j "$1") == "" ]]; }

# shellcheck disable=SC2317 # wait_until runs it
has_record() { # a final one, complete or not
    local text
    text=$(cat "$site/records/$1/"*.json 2>/dev/null) && [[ $text == *'"end_unix_s"'* && $text != *"still running"* ]]
}

read_record() { # JOB KEY.KEY…
    python3 -c '
import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2].split("."):
    value = (value or {}).get(key)
print(value)' "$(echo "$site/records/$1/"*.json)" "$2"
}
