#!/bin/sh
# Steelyard: around a job of Torque, as root (epilogue.precancel: as the job's user). One file under
# five names in PBS_HOME/mom_priv; NAME.site beside it is the site's own, called with the same
# arguments. pbs_mom requeues a job for ever at any exit code of a prologue but 0 and 1, and at 1 of a
# prologue.parallel, too: that leaves a note to the first node's, which runs when all those are done.

PROGRAM=@PREFIX@/libexec/steelyard/steelyard-node
CONFIG=@CONFIG@
PLAIN_S=2  # nothing was asked for: whatever hangs is left behind, the job goes on
ASKED_S=30 # delays are measured before the job may start

# tag <- what stands in the mom's own file of the job: it has what the arguments may lack.
job_file() {
    tag=
    file=${script%.[SJ][CB]}.JB
    [ -r "$file" ] || return 0
    while read -r line; do
        case $line in
        "<$1>"*"</$1>" | "<$1 "*"</$1>") tag=${line#*>} && tag=${tag%</*} && return 0 ;;
        esac
    done <"$file"
}

# node <- the name that the server knows this node by. A mom may have been told one.
node_name() {
    node=$(hostname)
    node=${node%%.*}
    # shellcheck disable=SC2046 # words
    set -- $(tr '\000' ' ' 2>/dev/null <"/proc/$mom/cmdline")
    while [ $# -gt 1 ]; do
        case $1 in
        -A | -H) node=$2 ;;
        esac
        shift
    done
}

# A command on the shared folder of records, which may not answer: it ends within 2 s or is left alone.
# Its stdout must not be a pipe: a command that cannot be killed would keep that open.
shared() { # COMMAND...
    timeout -k 1 1 "$@" 2>/dev/null </dev/null
}

# peer <- another node of the job; nodes <- their number, 0: only the first node has the list.
other_nodes() {
    peer='' nodes=0 last=''
    [ "$PBS_MSHOST" = "$node" ] || peer=$PBS_MSHOST
    [ -r "$PBS_NODEFILE" ] || return 0
    while read -r host; do
        [ "$host" != "$last" ] || continue
        nodes=$((nodes + 1)) last=$host
        [ "$host" = "$node" ] || peer=$host
    done <"$PBS_NODEFILE"
}

# said <- why another node cannot have what the job requests. Fails where the folder does not answer.
read_notes() {
    said=''
    [ "$nodes" -gt 1 ] || return 0
    copy=$(mktemp) || return 1
    # shellcheck disable=SC2016 # for the shell inside
    shared sh -c 'cd -- "$1" || exit
        while read -r host; do
            [ "$host" != "$last" ] && last=$host && [ -e "$2.$host" ] || continue
            printf "%s: " "$host" && cat "$2.$host" && rm -f "$2.$host"
        done <"$3"
        :' - "$records" "./.refused.$id" "$PBS_NODEFILE" >"$copy"
    code=$?
    read -r said <"$copy"
    rm -f "$copy"
    return "$code"
}

# mom <- pbs_mom itself: on the first node another process of it stands between.
mom_pid() {
    mom=$PPID next=$PPID comm=
    while [ "${next:-0}" -gt 1 ] && read -r comm <"/proc/$next/comm" && [ "$comm" = pbs_mom ]; do
        mom=$next next=
        while read -r key value; do
            [ "$key" = PPid: ] && next=$value && break
        done <"/proc/$mom/status"
    done 2>/dev/null
}

# request <- TEXT of other=steelyard:TEXT or other=THEIRS+steelyard:TEXT in the list of resources.
# hidden <- yes: the list, which ends at 2048 bytes without a word, lacks it.
requested() {
    request='' hidden=''
    case ,$resources in
    *,other=*) value=${resources#*other=} && value=${value%%,[a-z]*=*} ;;
    *) job_file other && value=$tag && hidden=${tag:+yes} ;;
    esac
    case $value in
    steelyard:* | *+steelyard:*) request=${value##*steelyard:} ;;
    esac
}

# What qsub -n asked for is in no argument; the mom's file of the job may not be there before its
# prologue has ended (a sister's never is), and to ask the server costs time: only where a condition
# hangs on it.
is_exclusive() {
    job_file node_exclusive
    [ "$tag" = 1 ] && return 0
    [ ! -r "$file" ] || return 1
    asks_for_conditions || return 1
    program=$(readlink "/proc/$mom/exe") && program=${program%/sbin/*}/bin/qstat
    case $(timeout -k 1 5 "$program" -f "$id" 2>/dev/null </dev/null) in
    *"node_exclusive = True"*) return 0 ;;
    esac
    return 1
}

owner_ids() {
    job_file execution_uid && uid=$tag
    job_file execution_gid && gid=$tag
    [ "$uid" ] || uid=$(id -u "$user") || return 1
    [ "$gid" ] || gid=$(id -g "$user")
}

# value <- of a key of $CONFIG, as steelyard-node reads it: without blanks around it; the last counts.
setting() { # KEY
    value=$(sed -n "s/^[[:space:]]*$1[[:space:]]*=[[:space:]]*\(.*[^[:space:]]\)[[:space:]]*\$/\1/p" "$CONFIG" 2>/dev/null | tail -n 1)
}

# records <- the folder that the nodes of a job share; root <- below which the node's files are read.
read_config() {
    setting record_dir
    records=${value:-/var/lib/steelyard/records}
    setting root
    root=$value
}

# group <- the job's cgroup, or its cpuset alone: a Torque that makes them has made it before its
# prologues run, of the same name in every hierarchy, and takes it away after its epilogues. The
# first node's prologue runs in it: what we use is not the job's.
job_group() {
    group=
    for mount in cpuacct cpu,cpuacct memory cpuset; do
        [ -d "$root/sys/fs/cgroup/$mount/torque/$id" ] || continue
        group=/torque/$id
        echo $$ 2>/dev/null >"$root/sys/fs/cgroup/$mount/cgroup.procs"
    done
    [ ! -d "$root/dev/cpuset/torque/$id" ] || group=/torque/$id
}

asks_for_conditions() {
    case :$request in
    *:netem=none | *:netem=none:*) return 1 ;;
    *:netem=* | *:cache=cold*) return 0 ;;
    esac
    return 1
}

# limit <- less than what pbs_mom gives a prologue, $prologalarm less 10 s: one that it ends is tried
# again for ever, one that refuses is not.
keep_below_alarm() {
    # Its number: pbs_mom takes what stands before anything else, in decimal, zeros before it or not.
    # shellcheck disable=SC2016 # sed's
    alarm=$(sed -n 's/^[[:space:]]*\$prologalarm[[:space:]]\{1,\}0*\([1-9][0-9]\{0,5\}\).*/\1/p' config 2>/dev/null | tail -n 1)
    [ -z "$alarm" ] || [ "$limit" -le $((alarm - 13)) ] || limit=$((alarm - 13))
    [ "$limit" -gt 0 ] || limit=1
}

# No condition can be had without us; tags and rates may be missing.
without_us() {
    asks_for_conditions || return 0
    words="steelyard: the job asks for conditions, which node $(hostname) cannot set: $1. Ask the administrator, or submit without them."
    return 1
}

# The job's id is of an array: 12[3].server is task 3 of 12[].server.
array_fields() {
    case $id in *\[*\]*) ;; *) return ;; esac
    task=${id#*\[} && task=${task%%\]*}
    printf '%s\n' "--job" "array_job_id=${id%%\[*}[]${id#*\]}" "--job" "array_task_id=$task"
}

begin() {
    requested
    read_config
    mom_pid
    node_name
    shared rm -f "$records/.refused.$id.$node"
    [ -r "$CONFIG" ] || { without_us "Steelyard is turned off there (no $CONFIG)" && return 0 || return 1; }
    [ -x "$PROGRAM" ] || { without_us "there is no $PROGRAM" && return 0 || return 1; }
    owner_ids || return 0
    other_nodes
    job_group
    limit=$PLAIN_S
    [ -z "$hidden" ] || [ "$nodes" -lt 2 ] || without_us "its list of resources has more than 2048 bytes, and only the first node knows the end of it" || return 1
    # shellcheck disable=SC2046 # no blanks in these words
    set -- $(array_fields) --job-id "$id" --node "$node" --owner "$uid:$gid" --config "$CONFIG" \
        --parent "$mom" --mark "PBS_JOBID=$id" --mark "PBS_NODENUM=${PBS_NODENUM:-0}" \
        --partition "$queue" --job scheduler=pbs --job "name=$name"
    [ "$nodes" = 0 ] || set -- "$@" --job "nodes=$nodes"
    is_exclusive && set -- "$@" --exclusive yes
    { read -r server <../server_name; } 2>/dev/null && set -- "$@" --protect "$server"
    [ -z "$peer" ] || set -- "$@" --peer "$peer"
    [ -z "$group" ] || set -- "$@" --cgroup "$group"
    # The process that pbs_mom waits with becomes the job's shell.
    [ "$mom" = "$PPID" ] || set -- "$@" --session "$PPID" --join "$PPID"
    [ -z "$request" ] || { limit=$ASKED_S && set -- "$@" --request "$request"; }
    keep_below_alarm
    read_notes || without_us "whether other nodes can is not known: $records cannot be read there" || return 1
    [ -z "$said" ] || { words=$said && return 1; }
    words=$(timeout -k 1 "$limit" "$PROGRAM" job begin "$@" 2>&1 </dev/null >/dev/null)
    code=$?
    case $code in
    0) return 0 ;;
    4) return 1 ;;
    124 | 137) without_us "it took more than $limit s" ;;
    *) without_us "steelyard-node ended with $code" ;;
    esac
}

end() {
    read_config
    mom_pid
    node_name
    shared rm -f "$records/.refused.$id.$node"
    [ -x "$PROGRAM" ] || return 0
    set --
    job_file node_exclusive
    [ "$tag" != 1 ] || set -- --exclusive yes
    # A sister is told 0 whatever the job ended with.
    [ "${0##*.}" = parallel ] || set -- "$@" --exit-status "$status"
    timeout -k 1 "$ASKED_S" "$PROGRAM" job end --job-id "$id" --node "$node" --config "$CONFIG" \
        "$@" </dev/null >/dev/null 2>&1
    return 0
}

# sweep MOM_PRIV: undo what is left of jobs that this mom does not know any more. Where the first
# node refuses a job or is lost, no epilogue.parallel is run: this is, each minute.
sweep() {
    [ -x "$PROGRAM" ] && [ -r "$CONFIG" ] || return 0
    set +f
    for lock in "$1"/mom*.lock; do
        read -r mom <"$lock" || return 0
    done
    node_name
    jobs=$1/jobs
    set --
    for script in "$jobs"/*.JB; do
        job_file jobid
        [ -z "$tag" ] || set -- "$@" --alive "$tag"
    done
    timeout -k 1 "$ASKED_S" "$PROGRAM" job sweep --node "$node" --config "$CONFIG" --only-alive "$@" </dev/null
}

refuse() {
    echo "$words" >&2
    exit 1
}

leave_note() {
    # shellcheck disable=SC2016 # for the shell inside
    shared sh -c 'echo "$1" >"$2"' - "$words" "$records/.refused.$id.$node"
}

site() {
    [ ! -x "$0.site" ] || "$0.site" "$@"
}

set -f
id=$1 user=$2 name=$4
for script; do :; done # the last argument
case ${0##*/} in
prologue)
    resources=$5 queue=$6
    site "$@" || exit
    begin || refuse
    ;;
prologue.parallel)
    resources=$5 queue=$6
    site "$@" || exit
    begin || leave_note
    ;;
epilogue | epilogue.parallel)
    status=${10}
    end
    site "$@" || exit
    ;;
torque-sweep) sweep "$@" ;;
*) site "$@" || exit ;;
esac
exit 0
