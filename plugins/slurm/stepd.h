/* The plugin inside slurmstepd, as root, on every node of a job. */
#ifndef STEELYARD_SLURM_STEPD_H
#define STEELYARD_SLURM_STEPD_H

#include <stdint.h>
#include <sys/types.h>

#include <slurm/spank.h>

void sy_stepd_init(spank_t spank, int ac, char **av);
void sy_stepd_start(spank_t spank);
void sy_stepd_task(spank_t spank);
void sy_stepd_child(spank_t spank);
void sy_stepd_task_exit(spank_t spank);
void sy_stepd_exit(spank_t spank);

#endif
