#!/bin/bash
# Records what sacct of a Slurm release says about jobs of every kind: about 80 s.
# usage: record.sh FOLDER, with SLURM_CONF set to a fresh cluster of four idle nodes (a new one
# counts jobs from 1: `steelyard cluster up --no-plugin`).
set -euo pipefail

out=${1:?usage: record.sh FOLDER}
python=${PYTHON:-$(dirname "$0")/../../../build/venv/bin/python}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/ok.sh" <<'END'
#!/bin/bash
srun -n1 true
END
cat >"$work/array.sh" <<'END'
#!/bin/bash
sleep 1
[[ $SLURM_ARRAY_TASK_ID == 1 ]] && exit 3
[[ $SLURM_ARRAY_TASK_ID == 2 ]] && kill -9 $$
exit 0
END
cat >"$work/sleep.sh" <<'END'
#!/bin/bash
[[ ${SLURM_RESTART_COUNT:-0} -lt 2 ]] || exit 0
sleep 300
END

submit() {
    sbatch --parsable -o /dev/null -n1 "$@"
}

# A requeued job would wait for two minutes.
start_again() { # <job>...
    local job
    sleep 3
    for job in "$@"; do
        scontrol update job="$job" StartTime=now
    done
    sleep 3
}

submit -J ok "$work/ok.sh"                          # 1
submit -J arr --array=0-3%2 "$work/array.sh"        # 2
submit -J 'a|b,c d' "$work/ok.sh"                   # 3
submit -J timeout -t 1 "$work/sleep.sh"             # 4
submit -J requeue --requeue "$work/sleep.sh"        # 5
submit -J cancelled "$work/sleep.sh"                # 6
submit -J held -H "$work/sleep.sh"                  # 7
submit -J heldarray -H --array=0-4 "$work/sleep.sh" # 8
submit -J het -n1 : -n1 "$work/ok.sh"               # 9, 10
submit -J twonodes -N2 -n2 "$work/ok.sh"            # 11
submit -J $'line\nbreak' "$work/ok.sh"              # 12
sleep 3
scontrol update JobId=6 AdminComment=$'{"steelyard":1,"tags":{"k":"v|w"}}\nsecond line'
scancel 6 7 8_2 8_0 8_1
scontrol requeue 5
twice=$(submit -J twice --requeue "$work/sleep.sh")
requeued=$(submit -J requeuedarray --array=0-1 --requeue "$work/sleep.sh")
sleep 2
scontrol requeue "$twice"
scontrol requeue "${requeued}_1"
scancel 5 8
start_again "$twice" "${requeued}_1"
scontrol requeue "$twice"
start_again "$twice"
scancel "$requeued"
long=$(submit -J long -H --array="$(seq -s, 0 3 300),400-402,1000" "$work/sleep.sh")
stepped=$(submit -J stepped -H --array=1-9:2 "$work/sleep.sh")
scancel "$long" "$stepped"
until [[ $(sacct -n -X -P -j 4 -o state) == TIMEOUT ]]; do
    sleep 2
done
submit -J running "$work/sleep.sh"
submit -J waiting --array=0-3%1 "$work/sleep.sh"
failing=$(submit -J nodefail --no-requeue "$work/sleep.sh")
sleep 3
scontrol update NodeName="$(squeue -h -j "$failing" -o %N)" State=DOWN Reason=recording
sleep 10 # the steps of a new job are in the accounting before the job itself
sacct --helpformat >"$out/helpformat.txt"
"$python" -P - "$out/jobs.txt" <<'END'
import sys

from steelyard.analysis.sources.sacct import Sacct

with open(sys.argv[1], "w", encoding="utf-8") as file:
    sacct = Sacct()
    sacct.run(sacct.arguments([str(number) for number in range(1, 25)]), file.fileno())
END
scancel --user="$(id -un)"
sacct --version
