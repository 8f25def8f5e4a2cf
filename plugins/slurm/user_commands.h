/* The plugin inside the user's own sbatch, salloc and srun: options, nothing else. */
#ifndef STEELYARD_SLURM_USER_COMMANDS_H
#define STEELYARD_SLURM_USER_COMMANDS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <slurm/spank.h>

/* `new_job`: sbatch or salloc, whose job is not part of the one they may run in. */
void sy_client_init(spank_t spank, int ac, char **av, bool new_job);

#endif
