/* The sockets on which the samplers of a node's jobs listen: RUN_DIR/NODE.JOBID.sock. */
#ifndef STEELYARD_JOB_CONTROL_SOCKETS_H
#define STEELYARD_JOB_CONTROL_SOCKETS_H

#include <stdbool.h>
#include <sys/un.h>

/* Its address; names that are too long for one stand there as a number made of them. False when
 * RUN_DIR alone is too long for a Unix socket. */
bool sy_control_address(struct sockaddr_un *address, const char *run_dir, const char *node,
			const char *job_id);

/* Whether a sampler of another job listens on this node. Each one that does is sent that its job is
 * not alone. A sampler that takes its last sample does not listen. */
bool sy_control_meet_other_jobs(const char *run_dir, const char *node,
				const struct sockaddr_un *own);

/* Remove the node's sockets that nobody listens to any more. */
void sy_remove_stale_sockets(const char *run_dir, const char *node);

#endif
