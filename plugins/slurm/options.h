/* The plugin's options, in srun, sbatch, salloc and in slurmstepd. */
#ifndef STEELYARD_SLURM_OPTIONS_H
#define STEELYARD_SLURM_OPTIONS_H

#include <slurm/spank.h>

#include "config.h"
#include "job/job_options.h"

/* Carries all tags to the job: Slurm hands over only the last value of a repeated option. Its name
 * starts with SLURM_ so that --export=NONE lets it through. */
#define SY_TAGS_VARIABLE "SLURM_STEELYARD_TAGS"

/* What was given in this process. */
extern struct sy_user_options sy_options;

/* Register them with Slurm; from slurm_spank_init() only. `config` must stay. */
void sy_options_register(spank_t spank, const struct sy_config *config);

/* Forget what the environment of a surrounding job would hand to a new one. */
void sy_options_forget_environment(void);

#endif
