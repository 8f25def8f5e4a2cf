/* A link that varies in time: a table of delay, rate and loss in a folder of root's, read as steps.
 * The process that puts one step after another into the kernel: trace_follower.c. How:
 * docs/netem.md. */
#ifndef STEELYARD_NETEM_TRACE_H
#define STEELYARD_NETEM_TRACE_H

#include <jansson.h>

#include "base/error.h"
#include "base/hash.h"
#include "netem/policy/policy.h"
#include "netem/spec/spec.h"

#define SY_TRACE_MOST	   10000  /* lines */
#define SY_TRACE_LEAST_US  100000 /* between two lines: tc takes some ms for each */
#define SY_TRACE_MOST_TOLD 1000	  /* steps in the document; of the others the number alone */
#define SY_TRACE_LATE_S	   1.0	  /* a step may come so late on a busy node */

struct sy_step {
	int64_t at_us; /* since the beginning */
	struct sy_netem spec;
};

/* What a link does over time: a condition without a trace has one step. */
struct sy_steps {
	int count;
	struct sy_step *step;	     /* ascending, the first at 0 */
	char sha256[SY_SHA256_SIZE]; /* of the file */
};

/* FOLDER/NAME.csv of the trace that `spec` names: `time_s` and one or more of `delay_ms`,
 * `rate_mbit`, `loss_percent`. Each step is `spec` with these instead of the trace. */
int sy_trace_read(const char *folder, const struct sy_netem *spec, struct sy_steps *steps,
		  struct sy_error *err);
void sy_steps_free(struct sy_steps *steps);

/* Root's file, readable for all. The policy limits it: each line must be within its bounds. NULL:
 * no policy. */
int sy_trace_check_policy(const struct sy_steps *steps, const struct sy_policy *policy,
			  struct sy_error *err);

/* `trace` of a condition's document before its first step: the lines of the file with their loss,
 * for the verdict, and when the last one is due. A new reference. */
json_t *sy_steps_document(const struct sy_netem *requested, const struct sy_steps *steps);

/* Which step is due `elapsed_us` after the beginning, counted on where it repeats. */
int64_t sy_steps_find_due(const struct sy_steps *steps, bool repeats, int64_t elapsed_us);

/* When the step of this number is due. */
int64_t sy_steps_find_time(const struct sy_steps *steps, int64_t number);

#endif
