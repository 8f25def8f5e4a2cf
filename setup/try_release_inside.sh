#!/bin/bash
# What setup/try_release.sh runs in the chroot, as the first process of its namespaces.
set -euo pipefail

readonly site=/site user=4711
host=$(hostname -s)
readonly host
export SLURM_CONF=$site/slurm.conf
failed=0

prepare() {
    mount -t proc proc /proc
    mount -t sysfs sysfs /sys
    mount -t tmpfs tmpfs /run
    mount -t devtmpfs dev /dev
    mkdir -p /dev/shm "$site"/{spool,state,log,run,db}
    chmod 755 "$site" "$site/spool"
    ip link set lo up
    # A device to shape; its other end is here, too.
    ip link add eth9 type veth peer name wire
    ip address add 10.99.0.2/24 dev eth9
    ip link set eth9 up
    ip link set wire up
    ip route add default via 10.99.0.1
    grep -q ^steelyard-try: /etc/passwd ||
        echo "steelyard-try:x:$user:$user::/tmp:/bin/bash" >>/etc/passwd
}

build() {
    make -s -C /src -j"$(nproc)" install-slurm PREFIX=/usr/local
    install -D -m 0644 /usr/local/share/doc/steelyard/netem.conf.example /etc/steelyard/netem.conf
    cp /usr/local/share/doc/steelyard/plugstack.conf.example "$site/plugstack.conf"
}

configure() {
    local -r socket=$site/run/munge.socket
    cat >"$site/slurm.conf" <<EOF
ClusterName=try
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmctldPort=17817
AuthInfo=socket=$socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PrologFlags=Contain
PlugStackConfig=$site/plugstack.conf
SlurmctldPidFile=$site/run/slurmctld.pid
SlurmdPidFile=$site/run/slurmd.%n.pid
SlurmdSpoolDir=$site/spool/%n
StateSaveLocation=$site/state
SlurmctldLogFile=$site/log/slurmctld.log
SlurmdLogFile=$site/log/slurmd.%n.log
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=17819
AccountingStoragePass=$socket
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 Port=17820 CPUs=2
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=17821 CPUs=2
PartitionName=main Nodes=$host,n2 Default=YES
EOF
    # No cgroups in a chroot; 22.05 does not know that word, and does not need it.
    [[ $(slurmd -V) == *" 22."* ]] || echo CgroupPlugin=disabled >"$site/cgroup.conf"
    cat >"$site/slurmdbd.conf" <<EOF
AuthInfo=socket=$socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=17819
SlurmUser=root
LogFile=$site/log/slurmdbd.log
PidFile=$site/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageUser=root
StorageHost=localhost
EOF
    chmod 600 "$site/slurmdbd.conf"
    head -c 1024 /dev/urandom >"$site/munge.key"
    chmod 400 "$site/munge.key"
}

until_done() { # SECONDS COMMAND…
    local -r end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        if ((SECONDS > end)); then
            echo "not in time: $*" >&2
            return 1
        fi
        sleep 0.2
    done
}

# shellcheck disable=SC2317 # until_done runs it
idle() { [[ $(sinfo -h -t idle -o %D) == 2 ]]; }

start() {
    export MYSQL_UNIX_PORT=$site/run/db.sock
    # slurmdbd of today ends itself when two write to a job under MariaDB 11.6's snapshots
    printf '[mysqld]\nuser=root\ndatadir=%s\nsocket=%s\nskip-networking\npid-file=%s\nloose-innodb_snapshot_isolation=OFF\n' \
        "$site/db" "$MYSQL_UNIX_PORT" "$site/run/mariadb.pid" >"$site/my.cnf"
    mariadb-install-db --defaults-file="$site/my.cnf" --skip-test-db \
        --auth-root-authentication-method=normal >"$site/log/db.out" 2>&1
    mariadbd --defaults-file="$site/my.cnf" >>"$site/log/db.out" 2>&1 &
    munged --foreground --force --key-file="$site/munge.key" --socket="$site/run/munge.socket" \
        --pid-file="$site/run/munged.pid" --log-file="$site/log/munged.log" \
        --seed-file="$site/run/munged.seed" >"$site/log/munged.out" 2>&1 &
    until_done 60 test -S "$MYSQL_UNIX_PORT"
    mariadb --no-defaults --socket="$MYSQL_UNIX_PORT" -e 'create database slurm_acct_db'
    slurmdbd -D >"$site/log/slurmdbd.out" 2>&1 &
    until_done 60 sacctmgr -i add cluster try
    slurmctld -D >"$site/log/slurmctld.out" 2>&1 &
    mkdir -p "$site/spool/$host" "$site/spool/n2"
    slurmd -D -N "$host" >"$site/log/slurmd.out" 2>&1 &
    slurmd -D -N n2 >"$site/log/slurmd2.out" 2>&1 &
    until_done 60 idle
}

as_user() { (cd /tmp && setpriv --reuid=$user --regid=$user --clear-groups "$@"); }

check() { # NAME EXPECTED FOUND
    if [[ $3 == *"$2"* ]]; then
        echo "ok $1"
    else
        echo "not ok $1: expected $2, found $3"
        failed=1
    fi
}

# shellcheck disable=SC2317 # until_done runs it
has_ended() { [[ $(as_user sacct -X -n -P -j "$1" -o End) == 20* ]]; }

batch() { # OPTIONS…: prints the job's id when it has ended
    local -r job=$(as_user sbatch --parsable -o "/tmp/out" "$@")
    until_done 60 has_ended "$job"
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
    until_done 30 grep -q "JobId=$job\b.*admin_comment\|admin_comment.*JobId=$job\b" "$site/log/slurmctld.log"
    as_user scancel "$job"
    until_done 30 has_ended "$job"
    check "a cancelled job's tags" '"tags":{"k":"gone"}' "$(row "$job")"
    accounting "$job"
    complaints=$(grep -h 'error: steelyard' "$site/log/"slurmd.*.log | grep -v exclusive_only || :)
    check "no complaint in slurmd's log" "none" "${complaints:-none}"
}

# What `steelyard publish` writes by: to the byte; and joules where this Slurm takes them.
accounting() { # JOB
    local -r wish='{"cluster":"try","job_id":'$1 text='{"A":"it'"'"'s \"x\" `"}'
    local joules escaped=${text//\\/\\\\}
    escaped=${escaped//\"/\\\"}
    printf '%s,"admin_comment":"%s"}\n' "$wish" "$escaped" |
        /usr/local/libexec/steelyard/steelyard-slurmdb >/dev/null
    check "a comment of a job that is over" "$text" "$(row "$1")"
    joules=$(printf '%s,"energy_j":1234}\n' "$wish" | /usr/local/libexec/steelyard/steelyard-slurmdb)
    [[ $joules == *"25.11 and later"* ]] ||
        check "and its joules" 1234 "$(as_user sacct -X -n -P -j "$1" -o ConsumedEnergyRaw)"
}

# Every way a job can run, weighed, by an ordinary user; with the Python of the suite.
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
