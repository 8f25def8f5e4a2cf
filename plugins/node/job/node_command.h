/* Commands of steelyard-node that others start, but for the sampler (samplers.h): those that
 * apply conditions or undo them, whose answer is waited for, and sweeps. */
#ifndef STEELYARD_JOB_NODE_COMMAND_H
#define STEELYARD_JOB_NODE_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "job/job_options.h"
#include "job/spawn.h"

/* How our own program is started on this node. */
struct sy_node_program {
	const char *path, *run_dir;
	const char *variable;  /* as in struct sy_arguments */
	sy_egress_rule egress; /* likewise */
};

/* The beginning of a command of our own program. */
void sy_begin_arguments(struct sy_arguments *to, const struct sy_node_program *program);

/* Let records whose sampler was killed be finished, without waiting; as a rule there are none. */
void sy_finish_records(const struct sy_node_program *program, const char *node);

/* Let what killed samplers have left in the kernel be unloaded, without waiting. */
void sy_sweep_bpf(const struct sy_node_program *program, const char *bpf);

#define SY_GROUPS_MAX 128

/* Whose command it is. */
struct sy_command_job {
	struct sy_node_program program;
	const char *policy, *node, *job_id;
	uid_t uid;
	const gid_t *groups;
	size_t group_count;
	const char *partition; /* NULL or "": not known */
	bool has_whole_host;   /* the job has the machine for itself */
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

void sy_command_add_number(struct sy_command *command, const char *option, unsigned value);
void sy_command_add_run_dir(struct sy_command *command, const struct sy_command_job *job);
void sy_command_job(struct sy_command *command, const struct sy_command_job *job);

/* The policy, and the request that it is checked for. */
void sy_command_add_asker(struct sy_command *command, const struct sy_command_job *job);

/* Run it; its stdout in `out`. -1: stdout is empty; the error has the last line of stderr. */
int sy_command_run(const struct sy_command *command, int limit_ms, char *out, size_t size,
		   struct sy_error *err);

/* Run one whose stdout does not matter: -1 with what it complained of. */
int sy_command_run_silent(const struct sy_command *command, int limit_ms, struct sy_error *err);

#endif
