/* Setting a job's AdminComment: by steelyard-slurmdb, a process of its own outside of the job, so
 * that no job waits for slurmctld. */
#ifndef STEELYARD_SLURM_ADMIN_COMMENT_H
#define STEELYARD_SLURM_ADMIN_COMMENT_H

#include "config.h"
#include "step.h"

/* Put `own`, a line of JSON, below our key of the job's AdminComment. Waits half a second at most
 * for the result, which goes into the log; the program tries for a minute. */
void sy_admin_comment_write(const struct sy_config *config, const struct sy_step *step,
			    const char *own);

#endif
