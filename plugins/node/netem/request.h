/* What is asked for: the network conditions of a job on this node. */
#ifndef STEELYARD_NETEM_REQUEST_H
#define STEELYARD_NETEM_REQUEST_H

#include <jansson.h>
#include <sys/types.h>

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

#endif
