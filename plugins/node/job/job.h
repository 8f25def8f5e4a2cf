/* A job on this node, from its begin to its end, for schedulers whose prologues, epilogues and
 * hooks start a program: `steelyard-node job begin`, `end` and `sweep`. Slurm's plugin, which lives
 * in the job's own daemons, uses the same parts in its own order (plugins/slurm/spank_steelyard.h).
 *
 * begin (begin.c) starts the sampler as a process of its own (spawn.h), sends it what is
 * known of the job (samplers.h), and puts the network conditions and the cold cache
 * in place (conditions.h). What it has begun is in a state file, locked while somebody works on it
 * (state.h): a second begin of the same job adds what is new, and an end or a sweep finds what to
 * undo. end (end.c) undoes the conditions, lets the sampler write its record, removes leftovers of
 * containers (container_leftovers.h), and returns the totals for the scheduler's accounting
 * (accounting_report.h, comment.h). sweep (sweep.c) does that for jobs that are gone without an
 * end: killed daemons, rebooted nodes.
 *
 * It promises that a job never fails or hangs because of it: each step has a limit, whatever goes
 * wrong is a line in the node's log (node_log.h), and a folder of records that does not answer is
 * asked by another process. The exception is a condition that was requested and cannot be applied:
 * then begin refuses, with everything undone and one sentence for the user.
 *
 * It decides nothing about who may have which condition (netem/policy), reads no counters
 * (sampler), and knows no scheduler. */
#ifndef STEELYARD_JOB_JOB_H
#define STEELYARD_JOB_JOB_H

#include <stdbool.h>
#include <sys/types.h>

#include "counters/process_table.h"
#include "job/conditions.h"
#include "job/config.h"
#include "job/job_options.h"
#include "job/node_command.h"
#include "job/state.h"

#define SY_JOB_FIELDS 14
#define SY_JOB_JOINS  16

struct sy_job_begin {
	struct sy_job_config config;
	const char *program; /* steelyard-node */
	const char *job_id, *node, *cgroup, *partition, *peer, *restart_count;
	uid_t uid;
	gid_t gid;
	pid_t parent, session;
	bool late; /* the job has run here, and its begin was not reported: only missing facts are
		      noted */
	bool exclusive,
	    shared; /* the job has the node for itself, or shares it; neither: unknown */
	const char *mark[SY_MAX_MARKS];
	int marks;
	pid_t join[SY_JOB_JOINS]; /* processes whose children will be the job's */
	int joins;
	char *field[SY_JOB_FIELDS + 3]; /* FIELD=VALUE, ended by NULL */
	int fields;
	struct sy_user_options user_options;
};

/* 0; -1: a requested condition is not available, and all of this job is undone: `refusal` has the
 * sentence. Any other failure is in the log. */
int sy_job_begin(struct sy_job_begin *job, struct sy_error *refusal);

/* A job ends on this node, by its scheduler's word or found out. */
struct sy_job_end {
	struct sy_job_config config;
	const char *program, *job_id, *node, *exit_status;
	bool exclusive; /* reported only now */
};

/* Undo its conditions, let the sampler end, wait a moment for the record. The totals as one line of
 * JSON, to be freed (docs/formats.md part 5). */
char *sy_job_end(const struct sy_job_end *job);

/* End a job whose end was not reported: the record states that. The state is ours, and empty
 * afterwards. */
void sy_job_abandon(const struct sy_job_end *job, struct sy_job_state *state, const char *reason);

/* The same at a begin that was refused: the record is whole. */
void sy_job_give_up(const struct sy_job_end *job, struct sy_job_state *state);

struct sy_job_sweep {
	struct sy_job_end job; /* without an id */
	bool knows_alive;      /* `alive` has all jobs of this node */
	const char *const *alive;
	int alive_count;
};

/* What is left of jobs that are gone is undone and finished. */
void sy_job_sweep(const struct sy_job_sweep *sweep);

/* Of all jobs, without a look at their states: conditions, sockets, records. */
void sy_job_sweep_leftovers(const struct sy_job_end *job);

/* --- between the files of this room --- */

/* Whose commands are started for the job. */
struct sy_command_job sy_make_command_job(const struct sy_job_end *job);

#endif
