/* Totals out of the files of samplers that still run, here and on the other nodes. */
#ifndef STEELYARD_JOB_TOTALS_FILES_H
#define STEELYARD_JOB_TOTALS_FILES_H

#include <jansson.h>
#include <stdbool.h>
#include <time.h>

#include "job/totals.h"

/* As sy_totals_from_csv(), from a file that is still written to. */
bool sy_totals_from_csv_file(struct sy_totals *totals, int folder, const char *name);

struct sy_other_nodes {
	const char *folder, *own_node;
	time_t since; /* of this start of the job: START at least that */
	/* When our own sampler started: what had ended by then is of an earlier start of a job that
	 * was requeued. */
	time_t own_start;
	/* Last written to at least then, unless the record is finished: a node that was lost is
	 * not weighed. */
	time_t fresh;
	int limit_ms; /* gives up then: a shared file system may be slow */
};

/* `start`, or later where the sampler's own clock was behind: by that of the file system, where it
 * has `written` when it had been at work for `elapsed_s`. */
time_t sy_begun_at(time_t start, time_t written, double elapsed_s);

/* Add every other node that has samples NODE.START.csv in the folder. */
void sy_job_totals_add_others(struct sy_job_totals *job, const struct sy_other_nodes *others);

/* A record NODE.START.json, to be freed; NULL: none, or not a file of a bounded size. It belongs to
 * the job's user, the folder to root: no link, no pipe. */
char *sy_read_record(int folder, const char *name);

/* START of every NODE.START.csv (or .json: `ending`) of a node from `since` on. */
json_t *sy_starts(const char *folder, const char *node, const char *ending, time_t since);

#endif
