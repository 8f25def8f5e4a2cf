/* The samplers of a node's jobs: starts them, finds the sockets on which they listen
 * (RUN_DIR/NODE.JOBID.sock), sends them messages. */
#ifndef STEELYARD_JOB_SAMPLERS_H
#define STEELYARD_JOB_SAMPLERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/un.h>

#include "counters/process_table.h"
#include "job/job_options.h"
#include "job/node_command.h"

/* The address of a job's socket; names that are too long for one stand there as a number made of
 * them. False when RUN_DIR alone is too long for a Unix socket. */
bool sy_control_address(struct sockaddr_un *address, const char *run_dir, const char *node,
			const char *job_id);

/* Whether a sampler of another job listens on this node. Each one that does is sent that its job is
 * not alone. A sampler that takes its last sample does not listen. */
bool sy_control_meet_other_jobs(const char *run_dir, const char *node,
				const struct sockaddr_un *own);

/* Remove the node's sockets that nobody listens to any more. */
void sy_remove_stale_sockets(const char *run_dir, const char *node);

/* --- the launch of `steelyard-node sample`, which stays --- */

struct sy_launch {
	struct sy_node_program program;
	const char *record_dir, *job_id, *node;
	const char *bpf;  /* the program that has the kernel count; NULL: none */
	const char *root; /* NULL: counters are the machine's own */
	double rate_hz;
	pid_t watch;  /* the process that will report the job's end */
	pid_t parent; /* the daemon whose marked children are the job's; 0: none */
	unsigned linger_s;
	uid_t uid;
	gid_t gid;
	const struct sockaddr_un *control;
	const char *mark[SY_MAX_MARKS];
	int marks;
	char *const *job_fields;    /* NULL-terminated FIELD=VALUE */
	const struct sy_tags *tags; /* the known ones, or NULL */
};

/* Bind the control socket and start `steelyard-node sample` on it. Returns when the process is on
 * its way, without waiting for it to be ready: messages wait in the socket meanwhile. `pid`: its
 * process id, or NULL. -1 too where SY_OPENING_MAX samplers wait for the folder of records. */
int sy_launch_sampler(const struct sy_launch *launch, pid_t *pid, struct sy_error *err);

/* --- messages to the sampler (docs/formats.md, part 4): sent without waiting, kept when its queue
 * is full (the kernel holds 10 while the sampler still starts), dropped when it is gone. --- */

#define SY_MESSAGE_MAX 4096 /* what the sampler reads of one */
#define SY_QUEUE_MAX   64

struct sy_message_queue {
	int fd; /* connected to the sampler; -1: there is none */
	size_t count, sent;
	unsigned questions;
	char messages[SY_QUEUE_MAX][SY_MESSAGE_MAX];
};

/* Connect to a sampler that listens there; false when none does. */
bool sy_queue_open(struct sy_message_queue *queue, const struct sockaddr_un *address);

/* Append one message and try to send all that wait. Control characters end it. */
__attribute__((format(printf, 2, 3))) void sy_queue_send(struct sy_message_queue *queue,
							 const char *format, ...);

/* Send what waits, as far as it goes without waiting. */
void sy_queue_flush(struct sy_message_queue *queue);

/* The same, and wait at most `limit_ms` until nothing waits any more: a sampler that still starts
 * reads none. */
void sy_queue_drain(struct sy_message_queue *queue, int limit_ms);

/* Send `totals` and wait at most `limit_ms` for the answer to this very question, not to one before
 * that was given up: its length, or -1. */
int sy_queue_request_totals(struct sy_message_queue *queue, char *answer, size_t size,
			    int limit_ms);

void sy_queue_close(struct sy_message_queue *queue);

/* Whether the sampler has taken all messages and answered within that time. */
bool sy_queue_await_answer(struct sy_message_queue *queue, int limit_ms);

#endif
