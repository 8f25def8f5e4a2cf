/* Network conditions of a job on this node, put in place.
 *
 * The state file is written before the kernel is touched, so that whoever comes next can undo what
 * was begun (end.h): the job's end, the sampler, the next job, slurmd's start, an admin. All of it
 * is serialised by a lock in the same folder and may be called again at any time.
 *
 * tc is executed without a shell, with a time-out, from fixed folders. */
#ifndef STEELYARD_NETEM_APPLY_H
#define STEELYARD_NETEM_APPLY_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "netem/policy/policy.h"
#include "netem/spec/spec.h"

#define SY_PROTECTED_MAX 32
#define SY_PEERS_MAX	 32

/* A condition of a job (exclusive node, or no scheduler: the device; else the job's cgroup). */
struct sy_netem_request {
	const struct sy_netem *spec;
	const struct sy_policy *policy; /* NULL: root himself, by hand */
	const char *run_dir;		/* state in RUN_DIR/netem */
	const char *node, *job_id;	/* whose it is: file words (sy_is_file_word) */
	uid_t uid;			/* the job's user, for `show` */
	pid_t watch;			/* stale once this process has ended; 0: only by hand */
	json_t *marks; /* NULL, or words that processes of the job have in their environment: as
			* long as one of the user's has them all, it is not stale */
	const char *cgroup; /* the job's cgroup as in /proc/PID/cgroup; NULL: the whole device */
	const char *peer;   /* address for round-trip times; NULL: found, or none */
	int peer_count;	    /* of sites: nodes of the job, one of them may be at each */
	const char *peers[SY_PEERS_MAX];
	int answer_fd; /* a pipe to who asked; 0: none */
	int protected_count;
	struct sy_network protect[SY_PROTECTED_MAX]; /* the scheduler's addresses */
};

enum sy_netem_failure { SY_NETEM_REFUSED, SY_NETEM_MISSING, SY_NETEM_FAILED };

/* Put a condition in place and verify it. On success `*conditions` is the document of
 * docs/formats.md part 9 so far: also when the job has this very condition already, for another of
 * its steps. On failure nothing is changed and nothing is left. */
int sy_netem_apply(const struct sy_netem_request *request, json_t **conditions,
		   enum sy_netem_failure *failure, struct sy_error *err);

#endif
