#!/bin/bash
# The same jobs as `sacct -P` and as `sacct --json` tell them, one question after the other, while
# nothing changes: about 100 s.
# usage: record_both.sh FOLDER, with SLURM_CONF set to a cluster of two idle nodes or more. FOLDER/job_ids
# is what is to be asked for; the questions are asked by ask_both.sh, which has to be where sacct is.
# shellcheck disable=SC2016 # what is in single quotes is for the jobs
set -euo pipefail

out=${1:?usage: record_both.sh FOLDER}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ids=()

submit() { # OPTION… COMMAND
    local id
    id=$(sbatch --parsable -o /dev/null -n1 "${@:1:$#-1}" --wrap "${!#}")
    ids+=("$id")
    last=$id
}

until_state() { # STATE JOB
    until [[ $(squeue -h -t all -j "$2" -o %T) == "$1" ]]; do sleep 0.3; done
}

again() { # JOB: it would wait for two minutes
    until_state RUNNING "$1"
    sleep 2
    scontrol requeue "$1"
    until_state PENDING "$1"
    sleep 1
    scontrol update job="$1" StartTime=now
}

submit -t 1 -J timeout 'sleep 300'
submit -J ok 'srun -n1 true'
submit -J 'a|b,c d' 'exit 137'
submit -J $'line\nbreak' 'srun -n1 sh -c "exit 3"'
submit -J array --array=0-3 '[ $SLURM_ARRAY_TASK_ID = 1 ] && exit 3; [ $SLURM_ARRAY_TASK_ID = 2 ] && kill -9 $$; true'
submit -J two -N2 -n2 'srun true'
submit -J held -H 'true'
scancel "$last"
submit -J heldarray -H --array=0-40:2,100 'true'
scancel "${last}_2"
submit -J waiting -H --array=0-3 'true'
printf '#!/bin/bash\n#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n1\nsrun true\n' >"$work/het.sh"
ids+=("$(sbatch --parsable -o /dev/null -J het "$work/het.sh")")
submit -J cancelled 'sleep 300'
until_state RUNNING "$last"
scontrol update "JobId=$last" AdminComment=$'{"steelyard":{"tags":{"k":"v|w\\"ä"}}}\nsecond line'
sleep 2
scancel "$last"
submit -J twice --requeue '[ "${SLURM_RESTART_COUNT:-0}" -ge 2 ] || sleep 300'
again "$last"
again "$last"
submit -J requeued --requeue 'sleep 300'
again "$last"
until_state RUNNING "$last"
scancel "$last"
submit -J running 'sleep 3000'
until_state TIMEOUT "${ids[0]}"
sleep 15 # steps are in the accounting before their job, and slurmctld tells it every 5 s
(
    IFS=,
    printf '%s\n' "${ids[*]}"
) >"$out/job_ids"
