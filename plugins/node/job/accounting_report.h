/* The totals of a job on this node, for the scheduler's accounting: the words of AdminComment
 * (docs/formats.md part 5). */
#ifndef STEELYARD_JOB_ACCOUNTING_REPORT_H
#define STEELYARD_JOB_ACCOUNTING_REPORT_H

#include <jansson.h>
#include <stdbool.h>

struct sy_report {
	const char *record_dir, *job_id, *node;
	bool sampled;	       /* its sampler has answered just now */
	const char *totals;    /* its answer */
	double begin_unix_s;   /* of this start of the job; 0: not known */
	const json_t *earlier; /* of that begin; NULL: nothing is known of it */
};

/* At a job's begin: the STARTs of its records on this node that, with the clock set back, are
 * larger than its own will be; JSON's null where they are too many to be kept. */
json_t *sy_report_earlier(const char *record_dir, const char *job_id, const char *node,
			  double begin_unix_s);

/* One line of JSON, to be freed; NULL: no memory. */
char *sy_report_text(const struct sy_report *report);

#endif
