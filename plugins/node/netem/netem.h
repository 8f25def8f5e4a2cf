/* Network conditions of a job on this node: the room's main header.
 *
 * A request has one specification, which is expanded into a list of conditions (job_conditions.h):
 * one for `--netem=delay=50ms`, one a link for `sites=NAME`. A condition is a band below a root
 * qdisc of ours, on each device that its packets leave by (kernel/tc_batch.h), and for incoming
 * packets one on an ifb device. All conditions of a job are in one state file,
 * RUN_DIR/netem/NODE.JOB.json, and hold or fail together. Their states, in the words of its
 * document (docs/formats.md part 9):
 *
 * - requested: specification, policy and files are read; round-trip times before are measured.
 * - applied: their places are in the state, then in the kernel, which must report back what was
 *   requested. Of a trace a process makes one step after another from now on.
 * - measured: round-trip times at the start and at the end, counters of our qdiscs at the end.
 *   `valid` is judged from these alone (verify/verify.h).
 * - undone: what was on the device before is there again, and the finished document is in
 *   NODE.JOB.done.json. The job's end does it (sy_netem_finish), or the sampler; if both are gone,
 *   the next job, slurmd's start or an admin does, and the run is invalid.
 *
 * The room promises: the state is written before the kernel is touched, so that each step of a
 * killed process can be undone; one lock serializes all of it; undoing may be repeated; a job has
 * its conditions as requested or fails with one sentence; the scheduler's addresses, the policy's
 * and ssh are never shaped; another shaping or classful qdisc is never replaced.
 *
 * It does not: know any scheduler, shape RDMA or what a kernel file system sends for a job on a
 * shared node, or verify that the job reaches `rate`.
 *
 * tc is executed without a shell, with a time-out, from fixed folders. */
#ifndef STEELYARD_NETEM_NETEM_H
#define STEELYARD_NETEM_NETEM_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
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
	int answer_fd; /* a pipe to the requester; 0: none */
	int protected_count;
	struct sy_network protect[SY_PROTECTED_MAX]; /* the scheduler's addresses */
};

enum sy_netem_failure { SY_NETEM_REFUSED, SY_NETEM_MISSING, SY_NETEM_FAILED };

/* Put the conditions of a request in place and verify them. On success `*document` is that of
 * docs/formats.md part 9 so far: also when the job has these very conditions already, for another
 * of its steps. On failure nothing is changed and nothing is left. */
int sy_netem_apply(const struct sy_netem_request *request, json_t **document,
		   enum sy_netem_failure *failure, struct sy_error *err);

/* The job's end: measure once more, undo, leave the finished document in
 * RUN_DIR/netem/NODE.JOB.done.json for the record. 1: there was nothing; 0; -1: could not be undone
 * (the state stays, with the reason in it). `by`: undone_by of the document. */
int sy_netem_finish(const char *run_dir, const char *node, const char *job_id, const char *by,
		    struct sy_error *err);

/* Take the finished document of a job, removing it; NULL: there is none. */
json_t *sy_netem_consume_document(const char *run_dir, const char *node, const char *job_id);

/* Undo what nobody owns any more: another boot, or the watched process is gone. Returns how many
 * were undone, -1 when one could not be. One readdir when there is nothing. */
int sy_netem_undo_stale(const char *run_dir, const char *by, struct sy_error *err);

/* Undo everything of ours in this network namespace, state files or not (own handles). */
int sy_netem_clear_all(const char *run_dir, struct sy_error *err);

/* True when run_dir has anything for sy_netem_undo_stale: cheap enough for every job's start. */
bool sy_netem_has_states(const char *run_dir);

/* Whether a job has conditions here that are not stale. */
bool sy_netem_is_live(const char *run_dir, const char *node, const char *job_id);

/* All states, as an array of documents with node, job_id, user_id, stale, devices. */
json_t *sy_netem_list_states(const char *run_dir, struct sy_error *err);

#endif
