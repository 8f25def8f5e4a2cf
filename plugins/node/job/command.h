/* Commands of steelyard-node that put conditions in place or undo them: who asks, for which job. */
#ifndef STEELYARD_JOB_COMMAND_H
#define STEELYARD_JOB_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "job/launch.h"
#include "job/spawn.h"

#define SY_GROUPS_MAX 128

/* Whose command it is. */
struct sy_command_job {
	struct sy_node_program program;
	const char *policy, *node, *job_id;
	uid_t uid;
	const gid_t *groups;
	size_t group_count;
	const char *partition; /* NULL or "": not known */
	bool whole_host;       /* the job has the machine for itself */
	int64_t until_ms; /* of all its commands, by CLOCK_MONOTONIC; 0: each has its limit alone */
};

/* Words, and the numbers among them as text. */
struct sy_command {
	struct sy_arguments arguments;
	char number[8 + SY_GROUPS_MAX][16];
	size_t numbers;
	int64_t until_ms;
};

/* `limit_ms`, or the less that is left until `until_ms`, if that is not 0. */
int sy_command_limit_ms(int64_t until_ms, int limit_ms);

/* `steelyard-node GROUP VERB` */
void sy_command_begin(struct sy_command *command, const struct sy_command_job *job,
		      const char *group, const char *verb);

void sy_command_number(struct sy_command *command, const char *option, unsigned value);
void sy_command_states(struct sy_command *command, const struct sy_command_job *job);
void sy_command_job(struct sy_command *command, const struct sy_command_job *job);

/* The policy, and what it is asked about. */
void sy_command_asker(struct sy_command *command, const struct sy_command_job *job);

/* Run it; its stdout in `out`. -1: it said nothing there, with what it said on stderr instead. */
int sy_command_run(const struct sy_command *command, int limit_ms, char *out, size_t size,
		   struct sy_error *err);

/* Run one whose stdout does not matter: -1 with what it complained of. */
int sy_command_tell(const struct sy_command *command, int limit_ms, struct sy_error *err);

#endif
