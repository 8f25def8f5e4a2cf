/* Network conditions of a job on this node: the room's main header.
 *
 * A request has one specification, which is expanded into a list of conditions (condition.h): one
 * for `--netem=delay=50ms`, one a link for `sites=NAME`. A condition is a band below a root qdisc
 * of ours, on each device that its packets leave by (kernel/plan.h), and for incoming packets one
 * on an ifb device. All conditions of a job are in one state file, RUN_DIR/netem/NODE.JOB.json, and
 * hold or fail together. Their states, in the words of its document (docs/formats.md part 9):
 *
 *   requested   sy_netem_apply() (setup.h) has read specification, policy and files; round-trip
 * times before. applied     places are in the state, then in the kernel, which reports back what
 * was requested. With several steps a process changes them from now on (follower.h). measured
 * round-trip times at the start and at the end, counters of our qdiscs at the end; `valid` is
 * judged from these alone (verify/verdict.h). undone      what was on the device before is there
 * again. By sy_netem_finish() (teardown.h) at the job's end; by whoever comes first (sampler, next
 * job, slurmd, an admin) where the owner is gone: then the run is invalid. The finished document is
 * NODE.JOB.done.json.
 *
 * The room promises: the state is written before the kernel is touched, so that each step of a
 * killed process can be undone; one lock serializes all of it; undoing may be repeated; a job has
 * its conditions as requested or fails with one sentence; the scheduler's addresses, the policy's
 * and ssh are never shaped; somebody else's qdisc is never replaced.
 *
 * It does not: know any scheduler, decide who may ask (policy/policy.h does), shape RDMA or what a
 * kernel file system sends for a job on a shared node, or verify that the job reaches `rate`.
 *
 * tc is executed without a shell, with a time-out, from fixed folders. */
#ifndef STEELYARD_NETEM_NETEM_H
#define STEELYARD_NETEM_NETEM_H

#include <jansson.h>
#include <sys/types.h>

#include "netem/policy/policy.h"
#include "netem/spec/spec.h"

#define SY_PROTECTED_MAX 32
#define SY_PEERS_MAX	 32

/* For a job with an exclusive node, or without a scheduler, the device is shaped; else the packets
 * of the job's cgroup. */
struct sy_netem_request {
	const struct sy_netem *spec;
	const struct sy_policy *policy; /* NULL: root, by hand */
	const char *run_dir;		/* state in RUN_DIR/netem */
	const char *node, *job_id;	/* whose it is: file words (sy_is_file_word) */
	uid_t uid;			/* the job's user, for `show` */
	pid_t watch;			/* stale once this process has ended; 0: only by hand */
	json_t *marks; /* NULL, or words that processes of the job have in their environment: as
			* long as one of the user's has them all, it is not stale */
	const char *cgroup; /* the job's cgroup as in /proc/PID/cgroup; NULL: the whole device */
	int peer_count; /* addresses for round-trip times: a condition takes the first it shapes */
	const char *peers[SY_PEERS_MAX];
	int answer_fd; /* a pipe to who asked; 0: none */
	int protected_count;
	struct sy_network protect[SY_PROTECTED_MAX]; /* the scheduler's addresses */
};

enum sy_netem_failure { SY_NETEM_REFUSED, SY_NETEM_MISSING, SY_NETEM_FAILED };

#endif
