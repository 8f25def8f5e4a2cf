#!/bin/bash
# A Slurm without systemd in a chroot with private namespaces: sourced by setup/try_slurm_release_inside.sh and
# tests/packages/inside.sh. The caller sets `site`, the folder of slurm.conf, `host` and `user`, exports
# SLURM_CONF=$site/slurm.conf, and writes plugstack.conf.
: "${site:?} ${host:?} ${user:?}"

set_up_system() {
    mount -t proc proc /proc
    mount -t sysfs sysfs /sys
    mount -t tmpfs tmpfs /run
    mount -t devtmpfs dev /dev
    mount -t devpts devpts /dev/pts # apt gives dpkg a pty
    mkdir -p /dev/shm "$site"/{spool,state,log,run,db}
    chmod 755 "$site" "$site/spool"
    ip link set lo up
    # A device to shape, with both ends in this namespace. Daemons need an address besides lo's.
    ip link add eth9 type veth peer name wire
    ip address add 10.99.0.2/24 dev eth9
    ip link set eth9 up
    ip link set wire up
    ip route add default via 10.99.0.1
}

add_ordinary_user() {
    grep -q ^steelyard-try: /etc/passwd ||
        echo "steelyard-try:x:$user:$user::/tmp:/bin/bash" >>/etc/passwd
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
    # A chroot has no cgroups; 22.05 lacks `disabled`, and does not use cgroup/v1 with this configuration.
    local none=disabled
    [[ $(slurmd -V) != *" 22."* ]] || none=cgroup/v1
    echo "CgroupPlugin=$none" >"$site/cgroup.conf"
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

wait_until() { # SECONDS COMMAND…
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

# shellcheck disable=SC2317 # wait_until runs it
is_idle() { [[ $(sinfo -h -t idle -o %D) == 2 ]]; }

start() {
    export MYSQL_UNIX_PORT=$site/run/db.sock
    # slurmdbd ends when two connections write to a job under MariaDB 11.6's snapshots.
    printf '[mysqld]\nuser=root\ndatadir=%s\nsocket=%s\nskip-networking\npid-file=%s\ntmpdir=%s\nloose-innodb_snapshot_isolation=OFF\n' \
        "$site/db" "$MYSQL_UNIX_PORT" "$site/run/mariadb.pid" "$site/run" >"$site/my.cnf"
    mariadb-install-db --defaults-file="$site/my.cnf" --skip-test-db \
        --auth-root-authentication-method=normal >"$site/log/db.out" 2>&1
    mariadbd --defaults-file="$site/my.cnf" >>"$site/log/db.out" 2>&1 &
    munged --foreground --force --key-file="$site/munge.key" --socket="$site/run/munge.socket" \
        --pid-file="$site/run/munged.pid" --log-file="$site/log/munged.log" \
        --seed-file="$site/run/munged.seed" >"$site/log/munged.out" 2>&1 &
    wait_until 60 test -S "$MYSQL_UNIX_PORT"
    mariadb --no-defaults --socket="$MYSQL_UNIX_PORT" -e 'create database slurm_acct_db'
    slurmdbd -D >"$site/log/slurmdbd.out" 2>&1 &
    wait_until 60 sacctmgr -i add cluster try
    slurmctld -D >"$site/log/slurmctld.out" 2>&1 &
    mkdir -p "$site/spool/$host" "$site/spool/n2"
    slurmd -D -N "$host" >"$site/log/slurmd.out" 2>&1 &
    slurmd -D -N n2 >"$site/log/slurmd2.out" 2>&1 &
    wait_until 60 is_idle
}

as_user() { (cd /tmp && setpriv --reuid="$user" --regid="$user" --clear-groups "$@"); }
