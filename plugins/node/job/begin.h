/* A job begins on this node: its sampler is started, what its user asked for is put in place. */
#ifndef STEELYARD_JOB_BEGIN_H
#define STEELYARD_JOB_BEGIN_H

#include <stdbool.h>
#include <sys/types.h>

#include "counters/processes_list.h"
#include "job/addresses.h"
#include "job/config.h"
#include "job/wishes.h"

#define SY_JOB_FIELDS 14
#define SY_JOB_JOINS  16

struct sy_job_begin {
	struct sy_job_config config;
	const char *program; /* steelyard-node */
	const char *job_id, *node, *cgroup, *partition, *peer, *restart_count;
	uid_t uid;
	gid_t gid;
	pid_t parent, session;
	bool late; /* the job has run here, and nobody told its begin: only what is not known is
		      noted */
	bool exclusive, shared; /* the job has the node for itself, or has not; neither: not said */
	const char *mark[SY_MAX_MARKS];
	int marks;
	pid_t join[SY_JOB_JOINS]; /* processes whose children will be the job's */
	int joins;
	char *field[SY_JOB_FIELDS + 3]; /* FIELD=VALUE, ended by NULL */
	int fields;
	struct sy_wishes wishes;
};

/* 0; -1: a condition that was asked for cannot be had, and all of this job is undone: the sentence.
 * Whatever else goes wrong stands in the journal. */
int sy_job_begin(struct sy_job_begin *job, struct sy_error *refusal);

#endif
