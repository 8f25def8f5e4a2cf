/* Starting the sampler: a process of its own, outside the job. */
#ifndef STEELYARD_SLURM_LAUNCH_SAMPLER_H
#define STEELYARD_SLURM_LAUNCH_SAMPLER_H

#include <sys/un.h>

#include "base/error.h"
#include "config.h"
#include "step.h"

struct sy_launch {
	const struct sy_config *config;
	const struct sy_step *step;
	const struct sockaddr_un *control;
	char *const *job_fields; /* NULL-terminated FIELD=VALUE */
};

/* Bind the control socket and start `steelyard-node sample` on it. Returns when the process is on
 * its way, without waiting for it to be ready: messages wait in the socket meanwhile. */
int sy_launch_sampler(const struct sy_launch *launch, struct sy_error *err);

/* Let records whose sampler was killed be finished, without waiting; as a rule there are none. */
void sy_finish_records(const struct sy_config *config, const char *node);

/* Remove sockets of this node that a crash has left: nobody listens on them any more. */
void sy_remove_stale_sockets(const char *run_dir, const char *node);

#endif
