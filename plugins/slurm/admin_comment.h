/* Setting a job's AdminComment, politely: what others wrote in it stays, and what slurmctld takes
 * for that is not the job's time. */
#ifndef STEELYARD_SLURM_ADMIN_COMMENT_H
#define STEELYARD_SLURM_ADMIN_COMMENT_H

#include <stdbool.h>

#include "config.h"
#include "step.h"

/* Put `own`, a line of JSON, below our key, from a process of its own that tries a few times within
 * a minute. Waits `wait_ms` at most, 1.2 s once slurmctld was asked, because Slurm takes no
 * comment of a job that is over. An earlier one of this process that is still being tried is given
 * up. */
void sy_admin_comment_write(const struct sy_config *config, const struct sy_step *step,
			    const char *own, int wait_ms);

/* The same in two seconds, for a step that begins, unless another comes first: one that is shorter
 * has one update, at its end, for each is two lines of slurmctld's log. Nothing is waited for. */
void sy_admin_comment_write_later(const struct sy_config *config, const struct sy_step *step,
				  const char *own);

/* The last one is still being tried. */
bool sy_admin_comment_is_tried(void);

#endif
