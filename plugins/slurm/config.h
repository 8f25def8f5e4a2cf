/* The arguments of our line in plugstack.conf. */
#ifndef STEELYARD_SLURM_CONFIG_H
#define STEELYARD_SLURM_CONFIG_H

#include <stdbool.h>

#include "job/config.h"

struct sy_config {
	struct sy_job_config node; /* without what only PBS has: protect, exclusive, root */
	bool admin_comment;	   /* write totals into AdminComment */
};

/* Set the defaults, then the values of `av`. A faulty or unknown argument is reported to
 * `complain` (one sentence; may be NULL) and otherwise ignored. */
void sy_config_parse(struct sy_config *config, int ac, char *const *av,
		     void (*complain)(const char *sentence));

#endif
