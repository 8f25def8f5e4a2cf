/* slurmctld's knowledge of a job, queried by root: nothing here comes from the user's
 * environment. */
#ifndef STEELYARD_SLURM_SLURMCTLD_QUERY_H
#define STEELYARD_SLURM_SLURMCTLD_QUERY_H

#include <stdbool.h>
#include <sys/types.h>

#include <slurm/spank.h>

#include "base/error.h"
#include "job/conditions.h"
#include "job/node_command.h"
#include "step_identity.h"

#define SY_SLURM_DAEMONS "slurmctld or slurmdbd"

struct sy_job_facts {
	char partition[256];
	bool exclusive;	     /* nobody else is let on its nodes (OverSubscribe=NO) */
	bool has_whole_host; /* ... and the node is all of its host: no other slurmd on it is known
			      */
	size_t group_count;
	gid_t groups[SY_GROUPS_MAX];
	struct sy_addresses peers; /* of the job's first other nodes, one each */
	struct sy_addresses
	    protect; /* slurmctld, slurmdbd, and the host the job was submitted on */
};

/* Ask: some 5 ms, and 1 ms for each peer, of which so many are wanted. -1 when slurmctld does not
 * answer. */
int sy_job_facts_get(spank_t spank, const struct sy_step *step, int peers,
		     struct sy_job_facts *facts, struct sy_error *err);

/* Several slurmd on one host have names that are not the host's: none of them has the host for
 * itself, whatever its job has. */
bool sy_node_is_host(const char *node);

/* The addresses of slurmctld and slurmdbd, for any user; false when slurmctld does not answer. */
bool sy_scheduler_addresses(struct sy_addresses *addresses);

#endif
