/* The plugin's options, in srun, sbatch, salloc and in slurmstepd. */
#ifndef STEELYARD_SLURM_OPTIONS_H
#define STEELYARD_SLURM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <slurm/spank.h>

#include "config.h"
#include "netem/spec/spec.h"
#include "tag.h"

/* Carries all tags to the job: Slurm hands over only the last value of a repeated option. Its name
 * starts with SLURM_ so that --export=NONE lets it through. */
#define SY_TAGS_VARIABLE "SLURM_STEELYARD_TAGS"

enum sy_cache { SY_CACHE_AS_IT_IS, SY_CACHE_WARM, SY_CACHE_COLD };

struct sy_options {
	struct sy_tags tags;
	bool has_rate;
	double rate_hz;
	bool has_netem;
	struct sy_netem netem;
	enum sy_cache cache;
	bool capture;
	/* On the node: a condition was asked for that cannot even be understood (the environment
	 * that carries it is the user's to change), and why; "": none. */
	char fault[sizeof(((struct sy_error *)0)->text)];
};

/* What was given in this process. */
extern struct sy_options sy_options;

/* Register them with Slurm; from slurm_spank_init() only. `config` must stay. */
void sy_options_register(spank_t spank, const struct sy_config *config);

/* Forget what the environment of a surrounding job would hand to a new one. */
void sy_options_forget_environment(void);

#endif
