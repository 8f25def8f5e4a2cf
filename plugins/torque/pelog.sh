#!/bin/sh
# Steelyard: around a job of Torque, as root (epilogue.precancel: as the job's user). One file under
# five names in PBS_HOME/mom_priv; NAME.site is the site's own script, called with the same arguments.
# pbs_mom requeues a job forever at any exit code of a prologue but 0 and 1, and of a prologue.parallel
# but 0. So prologue.parallel writes an answer for the first node's prologue, which runs afterwards. What a
# killed job leaves on a node, torque-sweep (cron) removes.

PROGRAM=@PREFIX@/libexec/steelyard/steelyard-node
CONFIG=@CONFIG@
PLAIN_S=2    # without a request: a program that hangs is abandoned, and the job starts
REQUEST_S=30 # with a request: delays are measured before the job starts

# Set tag from the mom's file of the job, which has more than the arguments.
read_job_file() {
    tag=
    file=${script%.[SJ][CB]}.JB
    [ -r "$file" ] || return 0
    while read -r line; do
        case $line in
        "<$1>"*"</$1>" | "<$1 "*"</$1>") tag=${line#*>} && tag=${tag%</*} && return 0 ;;
        esac
    done <"$file"
}

# Set node to the name by which the server knows this node: the mom's option, or the host's name.
set_node_name() {
    node=$(hostname)
    node=${node%%.*}
    # shellcheck disable=SC2046 # arguments
    set -- $(tr '\000' ' ' 2>/dev/null <"/proc/$mom/cmdline")
    while [ $# -gt 1 ]; do
        case $1 in
        -A | -H) node=$2 ;;
        esac
        shift
    done
}

# Run a command on the shared folder of records, which may not answer: within 2 s it ends or is abandoned.
# Its stdout must not be a pipe: a command that cannot be killed would keep it open.
run_on_records() { # COMMAND...
    timeout -k 1 1 "$@" 2>/dev/null </dev/null
}

# Set peer to another node of the job, and nodes to their number; 0: only the first node has the list.
read_other_nodes() {
    peer='' nodes=0 seen=' '
    [ "$PBS_MSHOST" = "$node" ] || peer=$PBS_MSHOST
    [ -r "$PBS_NODEFILE" ] || return 0
    while read -r host; do
        case $seen in *" $host "*) continue ;; esac
        nodes=$((nodes + 1)) seen="$seen$host "
        [ "$host" = "$node" ] || peer=$host
    done <"$PBS_NODEFILE"
}

# On the first node: remove the other nodes' answers, after printing those that are not "ready" as
# "HOST: TEXT". WITHOUT_ANSWER is the text of a node that has not answered; empty: it has nothing to report.
# Fails where the folder does not answer.
take_answers() { # [WITHOUT_ANSWER]
    [ -r "$PBS_NODEFILE" ] || return 0
    # An NFS client remembers which names a folder lacks until the client itself changes the folder.
    # shellcheck disable=SC2016 # for the shell inside
    run_on_records sh -c 'cd -- "$1" || exit
        [ -z "$5" ] || { true >"$2.$4" && rm -f "$2.$4"; }
        seen=" $4 "
        while read -r host; do
            # A mom with $nodefile_suffix adds it to each name; the list begins with the first node.
            [ "${suffix+is set}" ] || suffix=${host#"$4"}
            host=${host%"$suffix"}
            case $seen in *" $host "*) continue ;; esac
            seen="$seen$host " text="" answer=$2.$host
            [ -e "$answer" ] || answer=$2.${host%%.*}
            [ ! -e "$answer" ] || { read -r text <"$answer"; rm -f "$answer"; }
            [ "$text" = ready ] || [ -z "${text:-$5}" ] || printf "%s: %s\n" "$host" "${text:-$5}"
        done <"$3"
        :' - "$records" "./.answer.$id" "$PBS_NODEFILE" "$PBS_MSHOST" "$1"
}

# Set refusal to the reason for which another node refuses the request. A node that does not report a
# condition as ready refuses it: its answer may be lost, or it has no prologue of ours. Fails where the
# folder does not answer.
read_refusals() {
    refusal='' without_answer=''
    [ "$nodes" -gt 1 ] || return 0
    copy=$(mktemp) || return 1
    ! requests_conditions || without_answer="steelyard: it has not reported the requested conditions as ready in $records, which all nodes must share. Ask the administrator, or submit without them."
    take_answers "$without_answer" >"$copy"
    code=$?
    read -r refusal <"$copy"
    rm -f "$copy"
    return "$code"
}

# Set mom to the process id of pbs_mom: on the first node its child is the parent of this script.
find_mom() {
    mom=$PPID next=$PPID comm=
    while [ "${next:-0}" -gt 1 ] && read -r comm <"/proc/$next/comm" && [ "$comm" = pbs_mom ]; do
        mom=$next next=
        while read -r key value; do
            [ "$key" = PPid: ] && next=$value && break
        done <"/proc/$mom/status"
    done 2>/dev/null
}

# Set request to TEXT of other=steelyard:TEXT or other=THEIRS+steelyard:TEXT in the list of resources.
# Set hidden to yes where the list, which is silently cut at 2048 bytes, lacks it.
read_request() {
    request='' hidden=''
    case ,$resources in
    *,other=*) value=${resources#*other=} && value=${value%%,[a-z]*=*} ;;
    *) read_job_file other && value=$tag && hidden=${tag:+yes} ;;
    esac
    case $value in
    steelyard:* | *+steelyard:*) request=${value##*steelyard:} ;;
    esac
}

# Whether the job requested its nodes exclusively. No argument of the prologue has qsub -n. The mom's file
# of the job may not exist before the prologue has ended (a sister's never does), and a query of the
# server takes time: it is queried only for a condition.
is_exclusive() {
    read_job_file node_exclusive
    [ "$tag" = 1 ] && return 0
    [ ! -r "$file" ] || return 1
    requests_conditions || return 1
    program=$(readlink "/proc/$mom/exe") && program=${program%/sbin/*}/bin/qstat
    case $(timeout -k 1 5 "$program" -f "$id" 2>/dev/null </dev/null) in
    *"node_exclusive = True"*) return 0 ;;
    esac
    return 1
}

read_owner_ids() {
    read_job_file execution_uid && uid=$tag
    read_job_file execution_gid && gid=$tag
    [ "$uid" ] || uid=$(id -u "$user") || return 1
    [ "$gid" ] || gid=$(id -g "$user")
}

# Set value to that of a key of $CONFIG, as steelyard-node reads it: without blanks; the last one counts.
read_setting() { # KEY
    value=$(sed -n "s/^[[:space:]]*$1[[:space:]]*=[[:space:]]*\(.*[^[:space:]]\)[[:space:]]*\$/\1/p" "$CONFIG" 2>/dev/null | tail -n 1)
}

# Set records to the folder that the nodes of a job share, and root to the prefix of the node's files.
read_config() {
    read_setting record_dir
    records=${value:-/var/lib/steelyard/records}
    read_setting root
    root=$value
}

# Set group to the job's cgroup, or to its cpuset alone. A Torque with cgroups makes it before its
# prologues, with the same name in every hierarchy, and removes it after its epilogues. The first node's
# prologue starts in it, and leaves it: its usage is not the job's.
find_job_cgroup() {
    group=
    for mount in cpuacct cpu,cpuacct memory cpuset; do
        [ -d "$root/sys/fs/cgroup/$mount/torque/$id" ] || continue
        group=/torque/$id
        echo $$ 2>/dev/null >"$root/sys/fs/cgroup/$mount/cgroup.procs"
    done
    [ ! -d "$root/dev/cpuset/torque/$id" ] || group=/torque/$id
}

requests_conditions() {
    case :$request in
    *:cache=cold* | *:netem=[!n]*) return 0 ;; # not netem=none
    esac
    return 1
}

# Reduce limit below pbs_mom's limit for a prologue, $prologalarm less 10 s: a prologue that pbs_mom ends
# is retried forever, one that refuses is not.
limit_to_alarm() {
    # pbs_mom reads the leading decimal digits, with or without leading zeros.
    # shellcheck disable=SC2016 # sed's
    alarm=$(sed -n 's/^[[:space:]]*\$prologalarm[[:space:]]\{1,\}0*\([1-9][0-9]\{0,5\}\).*/\1/p' config 2>/dev/null | tail -n 1)
    [ -z "$alarm" ] || [ "$limit" -le $((alarm - 13)) ] || limit=$((alarm - 13))
    [ "$limit" -gt 0 ] || limit=1
}

# Refuse a job that requests a condition, with the reason; others start without tags and rates.
start_unless_condition() {
    requests_conditions || return 0
    message="steelyard: the job asks for conditions, which node $(hostname) cannot set: $1. Ask the administrator, or submit without them."
    return 1
}

# Print the arguments of a job of an array: 12[3].server is task 3 of 12[].server.
print_array_fields() {
    case $id in *\[*\]*) ;; *) return ;; esac
    task=${id#*\[} && task=${task%%\]*}
    printf '%s\n' "--job" "array_job_id=${id%%\[*}[]${id#*\]}" "--job" "array_task_id=$task"
}

begin() {
    read_request
    read_config
    find_mom
    set_node_name
    run_on_records rm -f "$records/.answer.$id.$node"
    [ -r "$CONFIG" ] || { start_unless_condition "Steelyard is turned off there (no $CONFIG)" && return 0 || return 1; }
    [ -x "$PROGRAM" ] || { start_unless_condition "there is no $PROGRAM" && return 0 || return 1; }
    read_owner_ids || { start_unless_condition "the ids of user $user are not found" && return 0 || return 1; }
    read_other_nodes
    find_job_cgroup
    limit=$PLAIN_S
    [ -z "$hidden" ] || [ "$nodes" -lt 2 ] || start_unless_condition "its list of resources has more than 2048 bytes, and only the first node knows the end of it" || return 1
    # shellcheck disable=SC2046 # these arguments have no blanks
    set -- $(print_array_fields) --job-id "$id" --node "$node" --owner "$uid:$gid" --config "$CONFIG" \
        --parent "$mom" --mark "PBS_JOBID=$id" --mark "PBS_NODENUM=${PBS_NODENUM:-0}" \
        --partition "$queue" --job scheduler=pbs --job "name=$name"
    [ "$nodes" = 0 ] || set -- "$@" --job "nodes=$nodes"
    is_exclusive && set -- "$@" --exclusive yes
    { read -r server <../server_name; } 2>/dev/null && set -- "$@" --protect "$server"
    [ -z "$peer" ] || set -- "$@" --peer "$peer"
    [ -z "$group" ] || set -- "$@" --cgroup "$group"
    # pbs_mom's waiting child becomes the job's shell.
    [ "$mom" = "$PPID" ] || set -- "$@" --session "$PPID" --join "$PPID"
    [ -z "$request" ] || { limit=$REQUEST_S && set -- "$@" --request "$request"; }
    limit_to_alarm
    read_refusals || start_unless_condition "whether other nodes can is not known: $records cannot be read there" || refusal=$message
    [ -z "$refusal" ] || set -- "$@" --refuse "${refusal#steelyard: }"
    message=$(timeout -k 1 "$limit" "$PROGRAM" job begin "$@" 2>&1 </dev/null >/dev/null)
    code=$?
    [ -z "$refusal" ] || { message=$refusal && return 1; }
    case $code in
    0) return 0 ;;
    4) return 1 ;;
    124 | 137) start_unless_condition "it took more than $limit s" ;;
    *) start_unless_condition "steelyard-node ended with $code" ;;
    esac
}

end() {
    read_config
    find_mom
    set_node_name
    run_on_records rm -f "$records/.answer.$id.$node"
    # Where its prologue was killed, the answers of this start would be those of the next one.
    ! requests_conditions || take_answers >/dev/null
    [ -x "$PROGRAM" ] || return 0
    set --
    read_job_file node_exclusive
    [ "$tag" != 1 ] || set -- --exclusive yes
    # A sister gets 0 for any exit code of the job.
    [ "${0##*.}" = parallel ] || set -- "$@" --exit-status "$status"
    timeout -k 1 "$REQUEST_S" "$PROGRAM" job end --job-id "$id" --node "$node" --config "$CONFIG" \
        "$@" </dev/null >/dev/null 2>&1
    return 0
}

# sweep MOM_PRIV: undo leftovers of jobs that this mom does not list. Cron calls it each minute: where the
# first node refuses a job or is lost, no epilogue.parallel runs.
sweep() {
    [ -x "$PROGRAM" ] && [ -r "$CONFIG" ] || return 0
    set +f
    for lock in "$1"/mom*.lock; do
        read -r mom <"$lock" || return 0
    done
    set_node_name
    jobs=$1/jobs
    set --
    for script in "$jobs"/*.JB; do
        read_job_file jobid
        [ -z "$tag" ] || set -- "$@" --alive "$tag"
    done
    timeout -k 1 "$REQUEST_S" "$PROGRAM" job sweep --node "$node" --config "$CONFIG" --only-alive "$@" </dev/null
}

refuse() {
    echo "$message" >&2
    exit 1
}

write_answer() { # TEXT
    # shellcheck disable=SC2016 # for the shell inside
    run_on_records sh -c 'printf "%s\n" "$1" >"$2"' - "$1" "$records/.answer.$id.$node"
}

run_site_script() {
    [ ! -x "$0.site" ] || "$0.site" "$@"
}

set -f
id=$1 user=$2 name=$4
for script; do :; done # the last argument
case ${0##*/} in
prologue)
    resources=$5 queue=$6
    run_site_script "$@" || exit
    begin || refuse
    ;;
prologue.parallel)
    resources=$5 queue=$6
    run_site_script "$@" || exit
    if ! begin; then
        write_answer "$message"
    elif requests_conditions; then
        write_answer ready
    fi
    ;;
epilogue | epilogue.parallel)
    resources=$6 status=${10}
    read_request
    end
    run_site_script "$@" || exit
    ;;
torque-sweep) sweep "$@" ;;
*) run_site_script "$@" || exit ;;
esac
exit 0
