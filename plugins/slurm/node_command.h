/* Commands of steelyard-node that put conditions in place or undo them: who asks, for which job. */
#ifndef STEELYARD_SLURM_NODE_COMMAND_H
#define STEELYARD_SLURM_NODE_COMMAND_H

#include "base/error.h"
#include "config.h"
#include "job_facts.h"
#include "spawn.h"
#include "step.h"

/* Words, and the numbers among them as text. */
struct sy_command {
	struct sy_arguments arguments;
	char number[8 + SY_GROUPS_MAX][16];
	size_t numbers;
};

/* `steelyard-node GROUP VERB` */
void sy_command_begin(struct sy_command *command, const struct sy_config *config, const char *group,
		      const char *verb);

void sy_command_number(struct sy_command *command, const char *option, unsigned value);
void sy_command_states(struct sy_command *command, const struct sy_config *config);
void sy_command_job(struct sy_command *command, const struct sy_config *config,
		    const struct sy_step *step);

/* The policy, and what it is asked about. */
void sy_command_asker(struct sy_command *command, const struct sy_config *config,
		      const struct sy_step *step, const struct sy_job_facts *facts);

/* Run it; its stdout in `out`. -1: it said nothing there, with what it said on stderr instead. */
int sy_command_run(const struct sy_command *command, int limit_ms, char *out, size_t size,
		   struct sy_error *err);

/* Run one whose stdout does not matter: what it complains of goes to slurmd's log. */
void sy_command_tell(const struct sy_command *command, int limit_ms, const char *what);

#endif
