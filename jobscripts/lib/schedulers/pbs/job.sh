#!/bin/bash
# Properties of a PBS job, read from inside of it. Part of steelyard.sh.
#
# Sources are the node file, the job's variables, /proc and the folders of programs: the server is
# not queried. What cannot be found is empty, and the caller does without it.

# Print "INDEX:NODE", blanks between: each node once, with the number of its first line in the node file,
# the argument of `pbsdsh -n`. A node with two lines has two slots.
sy_pbs_distinct_nodes() {
    local line list='' index=0
    [[ -r ${PBS_NODEFILE:-} ]] || {
        sy_log "the job's node file is not there: PBS_NODEFILE=${PBS_NODEFILE:-}, expected on the job's first node"
        return 1
    }
    while read -r line || [[ -n $line ]]; do
        [[ -z $line || "$list " == *":$line "* ]] || list+="${list:+ }$index:$line"
        index=$((index + 1))
    done <"$PBS_NODEFILE"
    printf '%s' "$list"
}

# Print "SLOTS:NODE", blanks between: a node's number of lines in the node file (ppn, mpiprocs). Nothing
# where every node has one line, as in a job that requested no slots.
sy_pbs_slot_list() {
    local line node list='' more=''
    local -A count=()
    while read -r line || [[ -n $line ]]; do
        [[ -z $line ]] || count[$line]=$((${count[$line]:-0} + 1))
    done <"$PBS_NODEFILE"
    for node in "${!count[@]}"; do
        list+="${list:+ }${count[$node]}:$node"
        ((count[$node] == 1)) || more=1
    done
    [[ -z $more ]] || printf '%s' "$list"
}

# Print the path of a program of PBS: first by qsub's PATH, since this node's PATH may have another
# server's programs; then by PBS_EXEC, since the PATH of OpenPBS's jobs lacks its folder.
sy_pbs_program() { # <name>
    local folder key value conf=${PBS_CONF_FILE:-/etc/pbs.conf}
    while IFS= read -r -d : folder; do
        [[ $folder != /* || ! -f $folder/$1 || ! -x $folder/$1 ]] || { printf '%s' "$folder/$1" && return; }
    done <<<"${PBS_O_PATH:-}:"
    while IFS='=' read -r key value; do
        [[ $key != PBS_EXEC || ! -x $value/bin/$1 ]] || { printf '%s' "$value/bin/$1" && return; }
    done < <(cat -- "$conf" 2>/dev/null)
    type -P -- "$1" || :
}

# Print the end of the walltime in unix time, s; nothing: not known. Torque's jobs have PBS_WALLTIME,
# OpenPBS's do not. The job began when its node file was made.
sy_pbs_planned_end() {
    local begin
    [[ ${PBS_WALLTIME:-} =~ ^[0-9]+$ ]] || return 0
    begin=$(stat -c %Y -- "$PBS_NODEFILE") && printf '%d' "$((begin + PBS_WALLTIME))"
}

# Print the file of the job's stderr (or of stdout, where they are joined); nothing: not found. The job's
# first process has it open or, in a job with several nodes, pbs_demux.
sy_pbs_errors_file() {
    local id=${PBS_JOBID//[/\\[}
    find /proc/[0-9]*/fd -maxdepth 1 \( -lname "*/$id.ER" -o -lname "*/$id.OU" \) -printf '%l\n' \
        2>/dev/null | sort | head -n 1 # .ER first
}

# Whether Open MPI was built with TM: the ompi_info of its folder lists both components.
sy_pbs_has_tm() { # <mpirun>
    local folder text
    for folder in "${1%/*}" "$(dirname -- "$(readlink -f -- "$1")")"; do
        [[ -x $folder/ompi_info ]] || continue
        text=$("$folder/ompi_info" --parsable 2>/dev/null)
        [[ $text == *mca:plm:tm:* && $text == *mca:ras:tm:* ]]
        return
    done
    return 1
}

# Save the variables that a program of TM needs: sy_without_scheduler unsets them.
sy_pbs_save_job_variables() {
    local name
    for name in PBS_JOBID PBS_ENVIRONMENT PBS_JOBCOOKIE PBS_NODENUM PBS_TASKNUM PBS_MOMPORT \
        PBS_NODEFILE PBS_CONF_FILE; do
        [[ -z ${!name:-} ]] || export "SY_PBS_V_$name=${!name}"
    done
}

# Add the saved variables to `start` of the caller.
sy_pbs_add_job_variables() {
    local name
    start+=(env)
    for name in "${!SY_PBS_V_@}"; do
        start+=("${name#SY_PBS_V_}=${!name}")
    done
}
