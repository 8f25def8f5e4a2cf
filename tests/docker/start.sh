#!/bin/bash
# The entry point of every container: start.sh db|ctl|node|login, each for ever; and, while the
# image is made, start.sh configure: what differs between releases of Slurm.
set -euo pipefail

readonly CONFIGURED=/etc/slurm/.configured

configure() {
    # No cgroups in here; 22.05 does not know that word, and does not need it.
    [[ $(slurmd -V) == *" 22."* ]] || echo CgroupPlugin=disabled >/etc/slurm/cgroup.conf
    cp /usr/local/share/doc/steelyard/plugstack.conf.example /etc/slurm/plugstack.conf
    chown slurm /etc/slurm/slurmdbd.conf
    chmod 600 /etc/slurm/slurmdbd.conf
    install -d -o slurm -g slurm /var/log/slurm /var/spool/slurmctld
    install -d /var/spool/slurmd
    touch "$CONFIGURED"
}

# While /run/hold exists a daemon that has ended stays away.
keep_running() { # COMMAND…
    while :; do
        "$@" &
        wait "$!" || echo "$1 ended: $?"
        sleep 0.2
        while [[ -e /run/hold ]]; do sleep 0.2; done
    done
}

as_slurm() { setpriv --reuid=slurm --regid=slurm --clear-groups "$@"; }

start_munged() {
    install -d -o munge -g munge /run/munge /var/log/munge /var/lib/munge
    chown -R munge /etc/munge
    setpriv --reuid=munge --regid=munge --clear-groups munged --force
}

start_database() {
    install -d -o mysql -g mysql /run/mysqld /run/mariadbd /var/lib/mysql # trixie and older; sid
    [[ -e /var/lib/mysql/mysql ]] || mariadb-install-db --user=mysql --skip-test-db >/dev/null
    # slurmdbd of today ends itself when two write to a job under MariaDB 11.6's snapshots
    mariadbd --user=mysql --skip-networking --loose-innodb-snapshot-isolation=OFF >/var/log/mariadb.log 2>&1 &
    until mariadb -e 'select 1' >/dev/null 2>&1; do sleep 0.1; done
    mariadb -e "create database if not exists slurm_acct_db;
        create user if not exists slurm@localhost identified by 'slurm';
        grant all on slurm_acct_db.* to slurm@localhost"
}

add_accounts() {
    until sacctmgr -n show cluster >/dev/null 2>&1; do sleep 0.2; done
    sacctmgr -i add cluster steelyard || :
    sacctmgr -i add account lab || :
    sacctmgr -i add user alice,bob,root account=lab || :
}

rm -f /run/slurm/*.pid /run/hold
# host.sh's image is not made by a container: there it is done now.
[[ -e $CONFIGURED ]] || configure
[[ $1 != configure ]] || exit 0
for user in alice bob; do
    [[ -d /home/$user ]] || install -d -o "$user" -g "$user" "/home/$user"
done
# A container that is stopped tells its daemons, which save their state.
trap 'trap "" TERM; touch /run/hold; kill 0; wait; exit 0' TERM
ulimit -l unlimited 2>/dev/null || :
install -d -o slurm -g slurm /run/slurm
start_munged
case $1 in
db)
    start_database
    keep_running as_slurm slurmdbd -D
    ;;
ctl)
    add_accounts >/var/log/slurm/accounts.log 2>&1
    keep_running as_slurm slurmctld -D
    ;;
node) keep_running slurmd -D ;;
login) keep_running sleep infinity ;;
esac
