/* The conditions that a job requests. Commands of our own program apply and undo them, so that a
 * killed step leaves nothing half done. */
#ifndef STEELYARD_JOB_CONDITIONS_H
#define STEELYARD_JOB_CONDITIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "job/config.h"
#include "job/job_options.h"
#include "job/node_command.h"
#include "job/samplers.h"
#include "netem/netem.h"
#include "netem/spec/spec.h"

#define SY_ADDRESS_SIZE 64 /* more than INET6_ADDRSTRLEN */

/* Addresses as text, each once: the scheduler's, which no condition touches. */
struct sy_addresses {
	int count;
	char text[SY_PROTECTED_MAX][SY_ADDRESS_SIZE];
};

/* Every address of a host; a name that is not known has none. */
void sy_addresses_add_host(struct sy_addresses *to, const char *host);

/* -1 with a sentence when a `to=` names nothing but such an address: it would never be shaped.
 * `whose`: the daemons' names. */
int sy_refuse_scheduler(const struct sy_netem *spec, const struct sy_addresses *addresses,
			const char *whose, struct sy_error *err);

/* The peer whose round-trip times are most relevant: the only host that `to` names, else `peer`. */
void sy_find_peer(const struct sy_netem *spec, char peer[SY_ADDRESS_SIZE]);

struct sy_shape_request {
	const char *text; /* canonical */
	pid_t watch;	  /* when it is gone, anybody may undo it */
	const char
	    *cgroup;	  /* the job's; "/": one is made, for its tasks to join; NULL: the device */
	const char *peer; /* "": none is known */
	const struct sy_addresses *peers; /* instead, of sites: several; NULL: there is one */
	const struct sy_addresses *protect;
	const char *const *mark; /* as `netem apply --mark` */
	int marks;
};

/* Waits until the kernel has the conditions and they are verified. `join_path`: where a task must
 * go so that its traffic is the job's; "": nowhere. */
int sy_conditions_shape(const struct sy_command_job *job, const struct sy_shape_request *request,
			char join_path[SY_PATH_SIZE], struct sy_error *err);

/* What cold caches may take, for a job and for root: wiping CVMFS' cache, then dropping 100 GB of
 * page cache, which takes some 10 s. Below Slurm's UnkillableStepTimeout (60 s), as all that a
 * step's start waits for. Of it, cvmfs_config has what leaves room for the refusal to arrive. */
#define SY_COLD_LIMIT_MS 30000
#define SY_WIPE_LIMIT_MS (SY_COLD_LIMIT_MS - 5000)

/* Drop this node's page caches, and send the result to the sampler. */
int sy_conditions_drop_caches(const struct sy_command_job *job, int64_t cvmfs_mb,
			      struct sy_message_queue *queue, struct sy_error *err);

/* For the record: requested conditions are in it from the beginning with the reason why they are
 * missing; applied ones replace that. `what` NULL: the option itself. */
void sy_report_unmet_conditions(const struct sy_user_options *options, const char *how,
				const char *what, struct sy_message_queue *queue);

/* Whether the job has its network conditions here; and whether they hold: 1, 0, -1: not known. */
bool sy_has_conditions(const struct sy_command_job *job);
int sy_conditions_are_valid(const struct sy_command_job *job, bool other_networks);

/* The job's end on this node: undo its conditions. */
int sy_conditions_finish(const struct sy_command_job *job, const char *by, struct sy_error *err);

/* Undo what dead jobs have left. One look into a folder when there is nothing. */
int sy_conditions_undo_stale(const struct sy_command_job *job, const char *by,
			     struct sy_error *err);

#endif
