/* The Slurm plugin, by where it runs (spank_context). Each entry point does one thing:
 *
 * - In sbatch, salloc and srun, as the user: reads our options and refuses wrong ones before
 * anything is queued (options.h).
 * - In slurmd, as root: at its start clears what dead jobs have left, loads the program that
 * counts, and keeps it loaded until slurmd's end.
 * - In slurmstepd, as root, on every node of the job. A step goes through
 *     start     the extern step starts the job's sampler (without an extern step, the first step);
 *               others open its socket, have the kernel count what they start, and set up the
 *               network conditions that the user requested;
 *     task      the first task is forked: what slurmstepd has used until now is not the step's;
 *     child     in the task's own process: the conditions hold, or the task ends with exit code 4;
 *     task_exit the last task has ended: the step reports what its tasks have used
 *               (sy_own_usage_read), and a job without a batch step gets its AdminComment
 *               (admin_comment_launch.h);
 *     exit      the batch step sets AdminComment; the extern step undoes conditions and ends the
 *               sampler.
 *
 * A job never fails, and no daemon hangs, because of the plugin: what goes wrong is logged, and
 * every wait has a limit. The exception is a condition that was requested and cannot be applied.
 * What a killed daemon leaves, the next step, job or slurmd clears.
 *
 * The plugin measures nothing itself and does not touch the record folder: it starts steelyard-node
 * and steelyard-slurmdb outside of the job (job/spawn.h), and sends the sampler messages
 * (job/samplers.h, docs/formats.md part 4). */
#ifndef STEELYARD_SLURM_SPANK_STEELYARD_H
#define STEELYARD_SLURM_SPANK_STEELYARD_H

#include <slurm/spank.h>

void sy_slurmd_begin(int ac, char **av);
void sy_slurmd_end(void);

void sy_stepd_init(spank_t spank, int ac, char **av);
void sy_stepd_start(spank_t spank);
void sy_stepd_task(spank_t spank);
void sy_stepd_child(spank_t spank);
void sy_stepd_task_exit(spank_t spank);
void sy_stepd_exit(spank_t spank);

#endif
