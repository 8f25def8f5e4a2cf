# ---- submissions/b001-XXXXXXXX.sh
#!/bin/bash
#SBATCH --job-name=small.b001-XXXXXXXX
#SBATCH --array=0-3
#SBATCH --nodes=2
#SBATCH --chdir=/home/me/small.study
#SBATCH --output=/home/me/small.study/submissions/b001-XXXXXXXX.out
#SBATCH --open-mode=append
#SBATCH --export=ALL
#SBATCH --exclusive

# Each task of the array executes one run; line SLURM_ARRAY_TASK_ID + 1 of the list names it.
set -u
study=/home/me/small.study
mapfile -t runs <"$study/submissions/b001-XXXXXXXX.runs" || exit 1
run=${runs[SLURM_ARRAY_TASK_ID]}
attempt=$study/runs/$run/$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}
mkdir -p -- "$attempt" || exit 1
exec bash "$study/runs/$run/run.sh" >"$attempt/job.out" 2>&1

# ---- submissions/b001-XXXXXXXX.sh
#!/bin/bash
#SBATCH --job-name=small.b001-XXXXXXXX
#SBATCH --array=0-3
#SBATCH --nodes=1
#SBATCH --chdir=/home/me/small.study
#SBATCH --output=/home/me/small.study/submissions/b001-XXXXXXXX.out
#SBATCH --open-mode=append
#SBATCH --export=ALL
#SBATCH --exclusive

# Each task of the array executes one run; line SLURM_ARRAY_TASK_ID + 1 of the list names it.
set -u
study=/home/me/small.study
mapfile -t runs <"$study/submissions/b001-XXXXXXXX.runs" || exit 1
run=${runs[SLURM_ARRAY_TASK_ID]}
attempt=$study/runs/$run/$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}
mkdir -p -- "$attempt" || exit 1
exec bash "$study/runs/$run/run.sh" >"$attempt/job.out" 2>&1

# ---- submissions/b002-XXXXXXXX.sh
#!/bin/bash
#SBATCH --job-name=small.b002-XXXXXXXX
#SBATCH --array=0-3
#SBATCH --nodes=1
#SBATCH --chdir=/home/me/small.study
#SBATCH --output=/home/me/small.study/submissions/b002-XXXXXXXX.out
#SBATCH --open-mode=append
#SBATCH --export=ALL
#SBATCH --exclusive

# Each task of the array executes one run; line SLURM_ARRAY_TASK_ID + 1 of the list names it.
set -u
study=/home/me/small.study
mapfile -t runs <"$study/submissions/b002-XXXXXXXX.runs" || exit 1
run=${runs[SLURM_ARRAY_TASK_ID]}
attempt=$study/runs/$run/$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}
mkdir -p -- "$attempt" || exit 1
exec bash "$study/runs/$run/run.sh" >"$attempt/job.out" 2>&1

# ---- submissions/b002-XXXXXXXX.sh
#!/bin/bash
#SBATCH --job-name=small.b002-XXXXXXXX
#SBATCH --array=0-3
#SBATCH --nodes=2
#SBATCH --chdir=/home/me/small.study
#SBATCH --output=/home/me/small.study/submissions/b002-XXXXXXXX.out
#SBATCH --open-mode=append
#SBATCH --export=ALL
#SBATCH --exclusive

# Each task of the array executes one run; line SLURM_ARRAY_TASK_ID + 1 of the list names it.
set -u
study=/home/me/small.study
mapfile -t runs <"$study/submissions/b002-XXXXXXXX.runs" || exit 1
run=${runs[SLURM_ARRAY_TASK_ID]}
attempt=$study/runs/$run/$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}
mkdir -p -- "$attempt" || exit 1
exec bash "$study/runs/$run/run.sh" >"$attempt/job.out" 2>&1

