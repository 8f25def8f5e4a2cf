/* The totals of a job on this node, for the scheduler's accounting: the words of AdminComment
 * (docs/formats.md part 5). */
#ifndef STEELYARD_JOB_REPORT_H
#define STEELYARD_JOB_REPORT_H

#include <stdbool.h>

struct sy_report {
	const char *record_dir, *job_id, *node;
	bool sampled;	     /* its sampler has answered just now */
	const char *totals;  /* what it said */
	double begin_unix_s; /* of this start of the job; 0: not known */
};

/* One line of JSON, to be freed; NULL: no memory. */
char *sy_report_text(const struct sy_report *report);

#endif
