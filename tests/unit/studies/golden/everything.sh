# ---- submissions/b001-XXXXXXXX.sh
#!/bin/bash
#SBATCH --job-name=everything.b001-XXXXXXXX
#SBATCH --array=0-0%2
#SBATCH --nodes=1
#SBATCH --chdir=/home/me/everything.study
#SBATCH --output=/home/me/everything.study/submissions/b001-XXXXXXXX.out
#SBATCH --open-mode=append
#SBATCH --export=ALL
#SBATCH --ntasks-per-node=2
#SBATCH --time=1-00:10:00
#SBATCH --partition=main
#SBATCH --account=physics
#SBATCH --qos=low
#SBATCH --exclusive
#SBATCH --mem=1G
#SBATCH --comment-free
#SBATCH --nice=5
#SBATCH --licenses=nodes:1
#SBATCH --constraint='big&vm'
#SBATCH --tag=study=everything
#SBATCH --tag=block=1
#SBATCH --tag=node_type=virtual
#SBATCH --tag='who=me & '"'"'you'"'"''

# Each task of the array executes one run; line SLURM_ARRAY_TASK_ID + 1 of the list names it.
set -u
study=/home/me/everything.study
mapfile -t runs <"$study/submissions/b001-XXXXXXXX.runs" || exit 1
run=${runs[SLURM_ARRAY_TASK_ID]}
attempt=$study/runs/$run/$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}
mkdir -p -- "$attempt" || exit 1
exec bash "$study/runs/$run/run.sh" >"$attempt/job.out" 2>&1

# ---- submissions/b001-XXXXXXXX.sh
#!/bin/bash
#SBATCH --job-name=everything.b001-XXXXXXXX
#SBATCH --array=0-0%2
#SBATCH --nodes=1
#SBATCH --chdir=/home/me/everything.study
#SBATCH --output=/home/me/everything.study/submissions/b001-XXXXXXXX.out
#SBATCH --open-mode=append
#SBATCH --export=ALL
#SBATCH --ntasks-per-node=2
#SBATCH --time=1-00:10:00
#SBATCH --partition=main
#SBATCH --account=physics
#SBATCH --qos=low
#SBATCH --exclusive
#SBATCH --mem=1G
#SBATCH --comment-free
#SBATCH --constraint='big&physical'
#SBATCH --tag=study=everything
#SBATCH --tag=block=1
#SBATCH --tag=node_type=physical
#SBATCH --tag='who=me & '"'"'you'"'"''
#SBATCH --dependency=afterany:JOBID

# Each task of the array executes one run; line SLURM_ARRAY_TASK_ID + 1 of the list names it.
set -u
study=/home/me/everything.study
mapfile -t runs <"$study/submissions/b001-XXXXXXXX.runs" || exit 1
run=${runs[SLURM_ARRAY_TASK_ID]}
attempt=$study/runs/$run/$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}
mkdir -p -- "$attempt" || exit 1
exec bash "$study/runs/$run/run.sh" >"$attempt/job.out" 2>&1

# ---- submissions/b002-XXXXXXXX.sh
#!/bin/bash
#SBATCH --job-name=everything.b002-XXXXXXXX
#SBATCH --array=0-0%2
#SBATCH --nodes=1
#SBATCH --chdir=/home/me/everything.study
#SBATCH --output=/home/me/everything.study/submissions/b002-XXXXXXXX.out
#SBATCH --open-mode=append
#SBATCH --export=ALL
#SBATCH --ntasks-per-node=2
#SBATCH --time=1-00:10:00
#SBATCH --partition=main
#SBATCH --account=physics
#SBATCH --qos=low
#SBATCH --exclusive
#SBATCH --mem=1G
#SBATCH --comment-free
#SBATCH --constraint='big&physical'
#SBATCH --tag=study=everything
#SBATCH --tag=block=2
#SBATCH --tag=node_type=physical
#SBATCH --tag='who=me & '"'"'you'"'"''
#SBATCH --dependency=afterany:JOBID

# Each task of the array executes one run; line SLURM_ARRAY_TASK_ID + 1 of the list names it.
set -u
study=/home/me/everything.study
mapfile -t runs <"$study/submissions/b002-XXXXXXXX.runs" || exit 1
run=${runs[SLURM_ARRAY_TASK_ID]}
attempt=$study/runs/$run/$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}
mkdir -p -- "$attempt" || exit 1
exec bash "$study/runs/$run/run.sh" >"$attempt/job.out" 2>&1

# ---- submissions/b002-XXXXXXXX.sh
#!/bin/bash
#SBATCH --job-name=everything.b002-XXXXXXXX
#SBATCH --array=0-0%2
#SBATCH --nodes=1
#SBATCH --chdir=/home/me/everything.study
#SBATCH --output=/home/me/everything.study/submissions/b002-XXXXXXXX.out
#SBATCH --open-mode=append
#SBATCH --export=ALL
#SBATCH --ntasks-per-node=2
#SBATCH --time=1-00:10:00
#SBATCH --partition=main
#SBATCH --account=physics
#SBATCH --qos=low
#SBATCH --exclusive
#SBATCH --mem=1G
#SBATCH --comment-free
#SBATCH --nice=5
#SBATCH --licenses=nodes:1
#SBATCH --constraint='big&vm'
#SBATCH --tag=study=everything
#SBATCH --tag=block=2
#SBATCH --tag=node_type=virtual
#SBATCH --tag='who=me & '"'"'you'"'"''
#SBATCH --dependency=afterany:JOBID

# Each task of the array executes one run; line SLURM_ARRAY_TASK_ID + 1 of the list names it.
set -u
study=/home/me/everything.study
mapfile -t runs <"$study/submissions/b002-XXXXXXXX.runs" || exit 1
run=${runs[SLURM_ARRAY_TASK_ID]}
attempt=$study/runs/$run/$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}
mkdir -p -- "$attempt" || exit 1
exec bash "$study/runs/$run/run.sh" >"$attempt/job.out" 2>&1

