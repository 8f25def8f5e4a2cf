/* What runs of containers have left on this node that were killed: steelyard-left, the program
 * beside steelyard-node, removes it (jobscripts/lib/launcher_leftovers.sh). Nothing to do where it
 * is not there: the next run removes it then. */
#ifndef STEELYARD_JOB_CONTAINER_LEFTOVERS_H
#define STEELYARD_JOB_CONTAINER_LEFTOVERS_H

#include <sys/types.h>

#include "job/node_command.h"

#define SY_LEFTOVERS_OF_ANYBODY ((uid_t)-1)

/* At a job's end: wait some seconds for its last processes, and remove their leftovers, in /tmp
 * only those of the user; `log_line` gets a line for each thing removed. One or two readdirs when
 * there is nothing. */
void sy_leftovers_remove(const struct sy_node_program *program, const char *job_id, uid_t user,
			 void (*log_line)(const char *line));

/* What earlier jobs have left, without waiting. One look for a folder when there is nothing. */
void sy_leftovers_sweep(const struct sy_node_program *program);

#endif
